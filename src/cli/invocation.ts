/** One call of the command line: the terminal it speaks to and the store it works on. Made by main, given to commands. */
import type { Queue } from '../client/queue.js'
import { type ConnectOptions, connect } from '../connect.js'
import { partitionsIn } from '../core/partition-list.js'
import { hasStore } from './embedded.js'
import { CommandError } from './failure.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/** Options that stand before or after any command. */
export interface StoreOptions {
  url?: string
  schema?: string
}

const NO_STORE_FIX =
  'give --url or set LEASEHOLD_URL, such as postgres://user@host/database, or embedded:./data for development'

/** `may be made`: an embedded store that is not there is made, as by a first enqueue or worker. */
export type StoreWanted = 'there' | 'may be made'

export class Invocation {
  private queue: Promise<Queue> | undefined

  constructor(
    readonly terminal: Terminal,
    private readonly given: StoreOptions,
    private readonly environment: NodeJS.ProcessEnv = process.env,
  ) {}

  /** Of the store. There is no default: a command must not work on a store that nobody named. */
  get url(): string {
    const url = this.given.url ?? this.environment.LEASEHOLD_URL
    if (url) return url
    throw new CommandError('NO_STORE', 'no store was named', { fix: NO_STORE_FIX })
  }

  /** For a command that works on one store. */
  singleUrl(command: string): string {
    if (partitionsIn(this.url) === undefined) return this.url
    throw new CommandError('USAGE', `"${command}" works on one store, and several were named`, {
      fix: 'give the --url of one of them',
    })
  }

  /** Of each store. */
  private get urls(): string[] {
    return partitionsIn(this.url)?.partitions.map(({ url }) => url) ?? [this.url]
  }

  get schema(): string | undefined {
    return this.given.schema ?? (this.environment.LEASEHOLD_SCHEMA || undefined)
  }

  /** As `schema`, by the option alone: for a command that must not take the schema of everyday work. */
  get namedSchema(): string | undefined {
    return this.given.schema
  }

  /** For commands that bring a store of their own. */
  refuseStore(command: string): void {
    if (this.given.url === undefined) return
    throw new CommandError('USAGE', `"${command}" starts a store of its own and takes no --url`)
  }

  /**
   * The queue of the store; closed when the command has ended. Only workers and embedded stores bring the schema up to
   * date: nobody expects that of a look at a list. Nor that a slip of the pen in a path makes a new store there.
   */
  store(options: ConnectOptions = {}, wanted: StoreWanted = 'there'): Promise<Queue> {
    this.queue ??= this.opened(options, wanted)
    return this.queue
  }

  private async opened(options: ConnectOptions, wanted: StoreWanted): Promise<Queue> {
    if (wanted === 'there') await this.refuseMissing()
    return connect(this.url, {
      migrate: this.urls.every((url) => /^embedded:/i.test(url)),
      ...(this.schema === undefined ? {} : { schema: this.schema }),
      ...options,
    })
  }

  /** Throws NO_STORE where the URL is that of an embedded store and none is there. */
  async refuseMissing(): Promise<void> {
    for (const url of this.urls) {
      const dir = /^embedded:(.+)$/is.exec(url)?.[1]
      if (dir === undefined || (await hasStore(dir))) continue
      throw new CommandError('NO_STORE', `there is no store in ${printable(dir)}`, {
        fix: `check the path; "leasehold dev --dir ${printable(dir)}" makes one, and so does the first enqueue or worker`,
      })
    }
  }

  /** What a partition that does not answer holds is in no answer: said beside it. */
  async tellSilent(): Promise<void> {
    const queue = await this.queue?.catch(() => undefined)
    for (const { trouble } of queue?.connection.storage.partitions?.all ?? [])
      if (trouble !== undefined)
        this.terminal.note(this.terminal.notePaint('yellow', `without what it holds: ${printable(trouble.message)}`))
  }

  async close(): Promise<void> {
    // One that was never opened, or could not be, has nothing to close.
    const queue = await this.queue?.catch(() => undefined)
    await queue?.close()
  }
}
