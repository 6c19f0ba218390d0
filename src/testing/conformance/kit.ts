/**
 * What a conformance case works with: a fresh store, its clock, and builders that say only what matters to the case.
 * Made by the runner, used by the cases.
 */
import { strict as assert } from 'node:assert'
import { realEnv } from '../../core/env.js'
import { type JobSpec, type Json, SPEC_DEFAULTS } from '../../core/job.js'
import type { Control, EnqueueOutcome, Inspect, JobView, NewJob, Storage, Wake } from '../../storage/storage.js'
import { BEAT_MS, type Held, LEASE_MS, started, TestWorker } from './worker.js'

/** One fresh, empty store, for one case. */
export interface StoreUnderTest {
  /** One more handle to it, as another process would have. */
  open(): Promise<Storage>
  /** Moves the store's clock forward, without waiting. */
  advance(ms: number): Promise<void>
  /** By how much the clock may move during a case all by itself; 0 where nothing but `advance` moves it. */
  driftMs: number
  /** All handles are closed; nothing of the store need stay. */
  discard(): Promise<void>
}

/** Makes a fresh, empty store for one case. */
export type StoreFactory = () => Promise<StoreUnderTest>

/** A job as a case describes it: everything has a default. */
export type JobSketch = Partial<Omit<NewJob, 'payload' | 'spec' | 'idempotency'>> & {
  payload?: Json
  spec?: Partial<JobSpec>
  /** Makes it a job with an idempotency key. */
  key?: string
  retentionMs?: number
}

/** A worker that died, one that may take over, and the jobs as the dead one knows them. */
export interface Death {
  dead: TestWorker
  heir: TestWorker
  stale: Held[]
}

export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** What a case works with: a fresh store, its clock, and builders. */
export class Kit {
  /** The least span that the store can tell from its own drift. */
  readonly marginMs: number
  private readonly handles: Storage[] = []

  private constructor(
    private readonly under: StoreUnderTest,
    readonly store: Storage,
  ) {
    this.marginMs = Math.max(1, under.driftMs)
    this.handles.push(store)
  }

  static async over(factory: StoreFactory): Promise<Kit> {
    const under = await factory()
    return new Kit(under, await under.open())
  }

  /** One more handle to the same store. */
  async open(): Promise<Storage> {
    const handle = await this.under.open()
    this.handles.push(handle)
    return handle
  }

  async close(): Promise<void> {
    for (const handle of this.handles.reverse()) await handle.close()
    await this.under.discard()
  }

  get control(): Control {
    return present(this.store.control, 'control')
  }

  get inspect(): Inspect {
    return present(this.store.inspect, 'inspect')
  }

  get wake(): Wake {
    return present(this.store.wake, 'wake')
  }

  /** The store's clock goes on; nobody beats meanwhile. */
  async advance(ms: number): Promise<void> {
    await this.under.advance(ms)
  }

  /** The store's clock goes on while these workers beat as they should. */
  async pass(ms: number, ...workers: TestWorker[]): Promise<void> {
    for (let left = ms; left > 0; left -= BEAT_MS) {
      await this.under.advance(Math.min(left, BEAT_MS))
      for (const worker of workers) await worker.beat()
    }
  }

  /** Comes back as soon as it is so; for what a store does a moment later. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    for (let tries = 0; tries < 2_000; tries++) {
      if (isSo()) return
      await this.under.advance(0)
      await new Promise<void>((resolve) => realEnv.soon(resolve))
    }
    assert.fail(`it never came: ${what}`)
  }

  job(sketch: JobSketch = {}): NewJob {
    const { payload = null, spec, key, retentionMs = HOUR_MS, ...rest } = sketch
    const text = JSON.stringify(payload)
    return {
      id: realEnv.id(),
      kind: 'work',
      queue: 'q',
      priority: 4,
      payload: text,
      spec: { ...SPEC_DEFAULTS, ...spec, ...(key === undefined ? {} : { idempotencyKey: key }) },
      due: { delayMs: 0 },
      ...(key === undefined ? {} : { idempotency: { key, payloadHash: `hash of ${text}`, retentionMs } }),
      ...rest,
    }
  }

  /** Stores the jobs in one call; each has to be created. Answers their ids. */
  async enqueue(...sketches: JobSketch[]): Promise<string[]> {
    const jobs = sketches.map((sketch) => this.job(sketch))
    const outcomes = await this.store.enqueue(jobs)
    assert.deepEqual(
      outcomes,
      jobs.map((): EnqueueOutcome => ({ status: 'created' })),
    )
    return jobs.map(({ id }) => id)
  }

  async enqueueOne(sketch: JobSketch = {}): Promise<string> {
    return (await this.enqueue(sketch))[0]!
  }

  /** So many alike, in one call. */
  async enqueueMany(count: number, sketch: JobSketch = {}): Promise<string[]> {
    return this.enqueue(...new Array<JobSketch>(count).fill(sketch))
  }

  /** A registered worker that works through the given handle. */
  async worker(store: Storage = this.store): Promise<TestWorker> {
    const worker = new TestWorker(store, realEnv.id())
    const { status } = await worker.beat()
    assert.equal(status, 'ok', 'beat 1 registers a worker')
    return worker
  }

  /** One worker takes jobs and falls silent for a lease, while another one beats. */
  async death(jobs: number, told: 'started' | 'silent' = 'silent'): Promise<Death> {
    const [dead, heir] = [await this.worker(), await this.worker()]
    const stale = await dead.take(jobs)
    if (told === 'started') await dead.settle(...stale.map(started))
    await this.pass(LEASE_MS + this.marginMs, heir)
    return { dead, heir, stale }
  }

  /** The one job, which has to be known. */
  async view(id: string): Promise<JobView> {
    const [view] = await this.inspect.get([id])
    assert(view, `job ${id} is not known`)
    return view
  }

  /** Runs all due promotions. */
  async promote(): Promise<string[]> {
    const { moved } = await this.store.upkeep.promote(10_000)
    return moved.map(({ id }) => id)
  }
}

function present<T>(facet: T | undefined, name: string): T {
  assert(facet, `the case has to say that it needs ${name}`)
  return facet
}
