/**
 * One of the processes of a soak: all that producers, workers, upkeep and operators do to the store at the same time,
 * in random order and by random batches, straight at the port. Started by main.ts.
 */
import { realEnv } from '../src/core/env.js'
import { emptyHistory, SPEC_DEFAULTS } from '../src/core/job.js'
import { openPostgres, type PostgresStorage } from '../src/storage/postgres/index.js'
import type { Claim, NewJob, Settlement, WorkerInfo } from '../src/storage/storage.js'
import { generator } from '../src/testing/virtual-time.js'

/** What a soak process tells its parent at the end. */
export interface Told {
  calls: Record<string, number>
  /** Message of each error that reached the caller, by how often; deadlocks among them. */
  errors: Record<string, number>
  deadlocks: number
}

const QUEUES = ['a', 'b', 'c']
const KEYS = 500
const BATCH = 200
const RETENTION = { completedMs: 1_000, deadMs: 2_000, completedMax: 500, deadMax: 200, limit: 500 }
const INFO: WorkerInfo = { name: 'soak', queues: QUEUES, concurrency: 50, leaseMs: 10_000, beatMs: 3_000 }

const [url, schema, seconds, seed] = process.argv.slice(2) as [string, string, string, string]
/** What it does is the same for the same seed; how the processes meet is not. */
const chance = generator(Number(seed))

class SoakProcess {
  private readonly told: Told = { calls: {}, errors: {}, deadlocks: 0 }
  private worker = realEnv.id()
  private beats = 0
  private request = 0
  private held: { fence: number; ordinals: number[] }[] = []
  /** Of jobs that this process has seen, its own and others'. */
  private ids: string[] = []

  constructor(private readonly storage: PostgresStorage) {}

  async run(seconds: number): Promise<Told> {
    const until = realEnv.monotonic() + seconds * 1_000
    const acts = [this.enqueue, this.enqueue, this.claim, this.claim, this.settle, this.settle, this.cancel, this.steer]
    acts.push(this.prune, this.sweep, this.beat, this.look)
    await this.call('beat', () => this.beat())
    while (realEnv.monotonic() < until) {
      const act = acts[Math.floor(chance() * acts.length)]!
      await this.call(act.name, () => act.call(this))
    }
    return this.told
  }

  private async call(name: string, act: () => Promise<unknown>): Promise<void> {
    this.told.calls[name] = (this.told.calls[name] ?? 0) + 1
    try {
      await act()
    } catch (error) {
      const said = `${name}: ${chain(error)
        .map(({ code, message }) => `${code ?? ''} ${message}`)
        .join(' < ')}`
      this.told.errors[said] = (this.told.errors[said] ?? 0) + 1
      if (chain(error).some(({ code }) => code === '40P01')) this.told.deadlocks += 1
    }
  }

  /** Keys in random order, some of them twice in a batch, many known; others without a key, delayed or expiring. */
  private async enqueue(): Promise<void> {
    const jobs = Array.from({ length: BATCH }, (): NewJob => {
      const keyed = chance() < 0.7
      const delayed = chance() < 0.2
      return {
        id: realEnv.id(),
        kind: 'kind',
        queue: pick(QUEUES),
        priority: Math.floor(chance() * 16),
        payload: '{}',
        spec: chance() < 0.1 ? { ...SPEC_DEFAULTS, expiresInMs: 1_000 } : SPEC_DEFAULTS,
        due: { delayMs: delayed ? chance() * 2_000 : 0 },
        ...(keyed
          ? { idempotency: { key: `k${Math.floor(chance() * KEYS)}`, payloadHash: 'h', retentionMs: 1_000 } }
          : {}),
      }
    })
    await this.storage.enqueue(jobs)
    this.remember(jobs.map(({ id }) => id))
  }

  private async claim(): Promise<void> {
    this.request += 1
    const limit = 1 + Math.floor(chance() * 100)
    const queues = shuffled(QUEUES).map((queue) => ({ queue, share: limit, turn: 0 }))
    const request = { worker: this.worker, request: this.request, queues, limit, kinds: ['kind'], apart: [] }
    const finished = chance() < 0.5 ? this.settlements() : []
    this.take(await this.storage.claim({ ...request, suspects: chance() < 0.2, pollMs: 5_000, finished }))
  }

  private take({ status, leases }: Claim): void {
    if (status === 'gone') {
      this.worker = realEnv.id()
      this.beats = 0
      this.request = 0
      this.held = []
      return
    }
    for (const { fence, jobs } of leases) this.held.push({ fence, ordinals: jobs.map((_, ordinal) => ordinal) })
  }

  private async settle(): Promise<void> {
    const settlements = this.settlements()
    if (settlements.length > 0) await this.storage.settle(settlements)
  }

  /** Parts of leases, in random order, of every fate. */
  private settlements(): Settlement[] {
    const settlements: Settlement[] = []
    for (const lease of this.held) {
      const count = Math.ceil(lease.ordinals.length * chance())
      for (const ordinal of lease.ordinals.splice(0, count)) settlements.push(fate({ fence: lease.fence, ordinal }))
    }
    this.held = this.held.filter(({ ordinals }) => ordinals.length > 0)
    return shuffled(settlements)
  }

  private async cancel(): Promise<void> {
    await this.storage.control.cancel(shuffled(this.ids).slice(0, BATCH))
  }

  private async steer(): Promise<void> {
    const { inspect, control } = this.storage
    const queue = pick(QUEUES)
    const idsIn = async (state: 'dead' | 'delayed' | 'retrying'): Promise<string[]> =>
      shuffled((await inspect.list({ state, queue, limit: 100 })).jobs.map(({ id }) => id))
    await control.redrive(await idsIn('dead'), { force: true })
    await control.discard((await idsIn('dead')).slice(0, 20))
    await control.retry(await idsIn(pick(['delayed', 'retrying'])))
    if (chance() < 0.1) await control.purge(queue, BATCH)
  }

  private async prune(): Promise<void> {
    await this.storage.upkeep.prune(RETENTION)
  }

  private async sweep(): Promise<void> {
    await this.storage.upkeep.promote(BATCH)
    await this.storage.upkeep.expire(BATCH)
    const { leases } = await this.storage.takeOver({ worker: this.worker, limit: BATCH })
    for (const { fence, jobs, crashes } of leases)
      this.held.push({ fence, ordinals: jobs.flatMap((_, ordinal) => (crashes[ordinal] === null ? [] : [ordinal])) })
  }

  /** Now and then it forgets leases, so that beats give jobs back. */
  private async beat(): Promise<void> {
    this.beats += 1
    if (chance() < 0.3) this.held = this.held.slice(1)
    const leases = this.held.map(({ fence }) => fence)
    const { worker, request } = this
    const beat = { worker, n: this.beats, known: request, leases, started: [], mainLagMs: 0, info: INFO }
    const { status } = await this.storage.beat(beat)
    if (status === 'gone') this.take({ status: 'gone', leases: [] } as unknown as Claim)
  }

  private async look(): Promise<void> {
    const { jobs } = await this.storage.inspect.list({ state: 'ready', queue: pick(QUEUES), limit: 200 })
    this.remember(jobs.map(({ id }) => id))
    await this.storage.inspect.counts(pick(QUEUES))
  }

  private remember(ids: string[]): void {
    this.ids = [...ids, ...this.ids].slice(0, 2_000)
  }
}

function fate(place: { fence: number; ordinal: number }): Settlement {
  const history = { ...emptyHistory(), attempts: 1 }
  const drawn = chance()
  if (drawn < 0.6) return { ...place, to: 'completed', history: null, keep: true, startedAfterMs: 1, ranMs: 1 }
  if (drawn < 0.75) return { ...place, to: 'delayed', delayMs: chance() * 1_000, history, suspect: false }
  if (drawn < 0.9) return { ...place, to: 'ready', history, suspect: drawn < 0.78 }
  return { ...place, to: 'dead', reason: 'failed', history }
}

function chain(error: unknown): { code?: string; message: string }[] {
  const links: { code?: string; message: string }[] = []
  for (let at = error; at instanceof Error && links.length < 5; at = at.cause)
    links.push(at as Error & { code?: string })
  return links
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(chance() * from.length)]!
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [chance(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)
}

const storage = openPostgres({ url, schema })
const told = await new SoakProcess(storage).run(Number(seconds))
await storage.close()
process.send!(told, () => process.disconnect())
