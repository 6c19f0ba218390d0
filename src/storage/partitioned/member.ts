/**
 * One store of several. It knows whether its store answers, so that those who wait for the others do not wait for it:
 * once it was found away, calls fail at once until a look in the background finds it back. Made by connect.ts.
 */
import type { Env } from '../../core/env.js'
import { type ErrorCode, QueueError } from '../../core/errors.js'
import type { Partition, Storage } from '../storage.js'

/** A look that takes longer has failed, and so has a read during which such a look fails. */
const LOOK_MS_MAX = 2_000
/** Between two looks at a store that is away. */
const LOOK_AGAIN_MS = 1_000

/** The store is away, or not fit for use yet; asked again it may be. */
const AWAY: ReadonlySet<ErrorCode> = new Set([
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'SCHEMA_MISSING',
  'SCHEMA_OUTDATED',
])

export function isAway(error: unknown): error is QueueError {
  return error instanceof QueueError && AWAY.has(error.code)
}

export interface MemberOptions {
  name: string
  draining: boolean
  storage: Storage
  /** Brings the store up to date or looks whether it is; until that has gone well once, nothing else is asked of it. */
  open: () => Promise<void>
  env: Env
}

export class Member implements Partition {
  readonly name: string
  readonly draining: boolean
  readonly storage: Storage
  trouble: QueueError | undefined
  private opened = false
  private opening: Promise<void> | undefined
  private looking: Promise<void> | undefined
  /** Those who wait for an answer that is not worth a long wait. */
  private readonly readers = new Set<(trouble: QueueError) => void>()
  private lookedAt = Number.NEGATIVE_INFINITY

  constructor(private readonly options: MemberOptions) {
    this.name = options.name
    this.draining = options.draining
    this.storage = options.storage
  }

  async ready(): Promise<void> {
    if (this.opened) return
    this.opening ??= this.options.open().finally(() => {
      this.opening = undefined
    })
    await this.opening
    this.opened = true
  }

  /** Something that may have changed the store: it is waited for. Rejects with an error that names this store. */
  async change<T>(ask: (storage: Storage) => Promise<T>): Promise<T> {
    this.refuseTrouble()
    // The next ones shall not wait as long as this one.
    const slow = this.options.env.timer(LOOK_MS_MAX, () => void this.look())
    try {
      await this.ready()
      return await ask(this.storage)
    } catch (error) {
      if (isAway(error)) void this.look()
      throw this.named(error)
    } finally {
      slow.cancel()
    }
  }

  /** Something that only looks: given up as soon as the store is found away. */
  read<T>(ask: (storage: Storage) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.readers.delete(fail)
      }
      const fail = (trouble: QueueError): void => {
        leave()
        reject(trouble)
      }
      this.readers.add(fail)
      this.change(ask).then(resolve, reject).finally(leave)
    })
  }

  /** Found away by somebody else, such as whoever opened it. */
  away(error: QueueError): void {
    this.trouble = this.named(error) as QueueError
    this.lookedAt = this.options.env.monotonic()
  }

  private refuseTrouble(): void {
    if (this.trouble === undefined) return
    if (this.options.env.monotonic() - this.lookedAt >= LOOK_AGAIN_MS) void this.look()
    // Surely not sent, whatever had become of the call that met the trouble.
    const { code, message } = this.trouble
    throw new QueueError(code === 'OUTCOME_UNKNOWN' ? 'STORE_UNAVAILABLE' : code, message, { cause: this.trouble })
  }

  /** One look at a time; one call that failed need not mean that the store is away. */
  private look(): Promise<void> {
    this.looking ??= this.looked().finally(() => {
      this.looking = undefined
    })
    return this.looking
  }

  private async looked(): Promise<void> {
    const { env, storage } = this.options
    const answered = new AbortController()
    const late = env.sleep(LOOK_MS_MAX, answered.signal).then(() => {
      throw new QueueError('STORE_UNAVAILABLE', `no answer within ${LOOK_MS_MAX} ms`)
    })
    // When the look was answered first, nobody waits for it.
    late.catch(() => {})
    try {
      await Promise.race([this.opened ? lookAt(storage) : this.ready(), late])
      this.trouble = undefined
    } catch (error) {
      this.trouble = isAway(error) ? (this.named(error) as QueueError) : undefined
      if (this.trouble) for (const fail of [...this.readers]) fail(this.trouble)
    } finally {
      this.lookedAt = env.monotonic()
      answered.abort()
    }
  }

  private named(error: unknown): unknown {
    if (!(error instanceof QueueError) || error.message.startsWith(`partition "${this.name}"`)) return error
    const { code, field, jobId, cause } = error
    const more = { cause: cause ?? error, ...(field === undefined ? {} : { field }) }
    return new QueueError(code, `partition "${this.name}": ${error.message}`, {
      ...more,
      ...(jobId === undefined ? {} : { jobId }),
    })
  }
}

/** The least that a store can be asked. */
async function lookAt({ setup, inspect }: Storage): Promise<void> {
  if (setup !== undefined) await setup.check()
  else await inspect?.queues()
}
