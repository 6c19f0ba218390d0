/** One job in one place, in a queue of its own, with the workers that a race needs. Used by the tables of this folder. */
import assert from 'node:assert/strict'
import { emptyHistory, SPEC_DEFAULTS } from '../../../src/core/job.js'
import type { PostgresStorage } from '../../../src/storage/postgres/index.js'
import type { Beat, BeatAnswer, Claim, NewJob } from '../../../src/storage/storage.js'
import { INFO, newJob, TestWorker } from '../../support/jobs.js'
import { withPoints } from '../../support/points.js'
import { type Scratch, scratch } from '../../support/postgres.js'

const QUEUE = 'queue'
/** Retention of the key of each job. */
export const KEPT_MS = 60_000
/** How long each may wait for its start: it is late as soon as anybody comes for it. */
export const EXPIRES_MS = 1

/** A schema in which statements can be stopped. */
export async function raceStore(): Promise<Scratch> {
  const store = await scratch()
  await withPoints(store)
  await store.storage.enqueue([newJob({ queue: QUEUE })])
  return store
}

export class Scene {
  readonly job: NewJob
  worker!: TestWorker
  fence = 0

  constructor(
    readonly store: Scratch,
    more: Partial<NewJob> = {},
  ) {
    this.job = keyedJob(more)
  }

  get storage(): PostgresStorage {
    return this.store.storage
  }

  get id(): string {
    return this.job.id
  }

  /** Where the job is, by the view of all places; fails when it is in two. */
  async state(): Promise<string> {
    const rows = await this.store.sql('select state from :s.job where id = $1', [this.id])
    assert.ok(rows.length <= 1, `the job is in ${rows.length} places: ${rows.map(({ state }) => state).join(', ')}`)
    return (rows[0]?.state as string | undefined) ?? 'gone'
  }

  /** The numbers are those of the worker, whatever handle the call goes over. */
  claim(storage: PostgresStorage, worker = this.worker, more: Parameters<TestWorker['claim']>[0] = {}): Promise<Claim> {
    worker.request += 1
    return worker.on(storage).claim({ request: worker.request, ...more })
  }

  beat(storage: PostgresStorage, more: Partial<Beat> = {}): Promise<BeatAnswer> {
    this.worker.beats += 1
    return this.worker.on(storage).beat({ n: this.worker.beats, known: this.worker.request, ...more })
  }
}

/** It has a key and may expire, so that all races about it are there. */
export function keyedJob(more: Partial<NewJob> = {}): NewJob {
  const key = 'key'
  return newJob({
    queue: QUEUE,
    spec: { ...SPEC_DEFAULTS, idempotencyKey: key, expiresInMs: EXPIRES_MS },
    idempotency: { key, payloadHash: 'hash', retentionMs: KEPT_MS },
    ...more,
  })
}

/** Somebody who may judge other workers, as if it had been in touch for a long time. */
export async function newJudge(store: Scratch): Promise<TestWorker> {
  const judge = new TestWorker(store.storage)
  await judge.beat({ info: { ...INFO, leaseMs: 600_000, beatMs: 200_000 } })
  await store.sql('update :s.worker set steady_since = 0 where id = $1', [judge.id])
  return judge
}

/** Nothing is left of earlier scenes, whose workers would be judged and whose jobs would be claimed. */
async function cleared(store: Scratch): Promise<void> {
  await store.sql(`with a as (delete from :s.ready), b as (delete from :s.delayed), c as (delete from :s.lease), d as (delete from :s.dead),
    e as (delete from :s.idempotency), f as (delete from :s.expiry), g as (delete from :s.claim_request), h as (delete from :s.worker)
    delete from :s.ended`)
}

async function begun(store: Scratch, more: Partial<NewJob> = {}): Promise<Scene> {
  await cleared(store)
  const scene = new Scene(store, more)
  scene.worker = await TestWorker.registered(store.storage)
  assert.deepEqual(await store.storage.enqueue([scene.job]), [{ status: 'created' }])
  return scene
}

export function readyScene(store: Scratch): Promise<Scene> {
  return begun(store)
}

/** Of a job that is due by now, and was not promoted yet. */
export async function delayedScene(store: Scratch): Promise<Scene> {
  const scene = await begun(store, { due: { delayMs: 1 } })
  await store.sql('update :s.delayed set due = :s.clock() - 1 where id = $1', [scene.id])
  return scene
}

export async function leasedScene(store: Scratch): Promise<Scene> {
  const scene = await begun(store)
  const { leases } = await scene.claim(store.storage)
  scene.fence = leases[0]!.fence
  return scene
}

export async function deadScene(store: Scratch): Promise<Scene> {
  const scene = await leasedScene(store)
  const { fence } = scene
  await store.storage.settle([{ fence, ordinal: 0, to: 'dead', reason: 'failed', history: emptyHistory() }])
  return scene
}
