/** Order keys and limit keys on a real server: many claims at once, connections that are cut, and what a claim costs. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type JobSpec, SPEC_DEFAULTS } from '../../src/core/job.js'
import type { NewJob, Settlement, Storage } from '../../src/storage/storage.js'
import { held } from '../support/held.js'
import { completed, newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { seeded } from '../support/proxy.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

function keyed(queue: string, key: Partial<JobSpec>): NewJob {
  return newJob({ queue, spec: { ...SPEC_DEFAULTS, ...key } })
}

/** Calls until it is answered: the same call again, as a worker does. */
async function answered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (
        (error as { code?: string }).code !== 'STORE_UNAVAILABLE' &&
        (error as { code?: string }).code !== 'OUTCOME_UNKNOWN'
      )
        throw error
    }
  }
}

/** What really runs, as the handlers of all workers see it. */
class Running {
  readonly over: string[] = []
  readonly ends = new Map<string, string[]>()
  private readonly counts = new Map<string, number>()

  constructor(
    private readonly keyOf: ReadonlyMap<string, string>,
    private readonly limitOf: ReadonlyMap<string, number>,
  ) {}

  starts(id: string): void {
    const key = this.keyOf.get(id)!
    const count = (this.counts.get(key) ?? 0) + 1
    this.counts.set(key, count)
    if (count > this.limitOf.get(key)!) this.over.push(`${count} of ${key}`)
  }

  stops(id: string): void {
    const key = this.keyOf.get(id)!
    this.counts.set(key, this.counts.get(key)! - 1)
  }

  ended(id: string): void {
    const key = this.keyOf.get(id)!
    this.ends.set(key, [...(this.ends.get(key) ?? []), id])
  }
}

test('eight workers, sixty keys, connections cut all the time: no key is over its limit, no order broken, nothing stuck', async () => {
  const queue = 'race'
  const random = seeded(7)
  await store.storage.control.limit(queue, { perKey: { limit: 3, keys: { k1: 7, k2: 1 } } })
  const keyOf = new Map<string, string>()
  const limitOf = new Map<string, number>()
  const sent = new Map<string, string[]>()
  const calls: NewJob[][] = []
  for (let call = 0; call < 40; call++) {
    const jobs = Array.from({ length: 25 }, () => {
      const n = Math.floor(random() * random() * 60)
      const ordered = n % 3 === 0
      const job = keyed(queue, ordered ? { orderKey: `k${n}` } : { limitKey: `k${n}` })
      const key = `${ordered ? 'o' : 'l'}k${n}`
      keyOf.set(job.id, key)
      limitOf.set(key, ordered ? 1 : n === 1 ? 7 : n === 2 ? 1 : 3)
      sent.set(key, [...(sent.get(key) ?? []), job.id])
      return job
    })
    calls.push(jobs)
  }
  for (const jobs of calls.slice(0, 25)) await store.storage.enqueue(jobs)
  const late = (async () => {
    for (const jobs of calls.slice(25)) await store.storage.enqueue(jobs)
  })()
  const running = new Running(keyOf, limitOf)
  let left = keyOf.size
  const handles = Array.from({ length: 4 }, () => store.open({ connections: 2 }))
  const work = async (handle: Storage): Promise<void> => {
    const worker = await TestWorker.registered(handle)
    while (left > 0) {
      const limit = 1 + Math.floor(random() * 30)
      worker.request += 1
      const wish = { limit, queues: [{ queue, share: limit }], request: worker.request }
      const { leases } = await answered(() => worker.claim(wish))
      const settlements: Settlement[] = []
      const ends: string[] = []
      for (const { fence, jobs } of leases)
        for (const [ordinal, { id }] of jobs.entries()) {
          running.starts(id)
          const chance = random()
          const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
          if (chance < 0.1) settlements.push({ fence, ordinal, to: 'delayed', delayMs: 5, suspect: false, history })
          else if (chance < 0.2) settlements.push({ fence, ordinal, to: 'ready', suspect: false, history: null })
          else {
            settlements.push(completed(fence, ordinal))
            ends.push(id)
          }
        }
      for (const { jobs } of leases) for (const { id } of jobs) running.stops(id)
      for (const id of ends) running.ended(id)
      left -= ends.length
      if (settlements.length > 0) await answered(() => handle.settle(settlements))
      await answered(() => handle.upkeep.promote(100))
    }
  }
  const cutting = (async () => {
    while (left > 0)
      await store.sql(
        `select pg_terminate_backend(a.pid) from (select pid from pg_stat_activity where pid <> pg_backend_pid()
          and query like '%' || $1 || '%' and query ~ 'claim_jobs|settle|promote' order by random() limit 1) a, pg_sleep(0.15)`,
        [store.schema],
      )
  })()
  await Promise.all([...handles, ...handles].map(work))
  await Promise.all([late, cutting])
  assert.deepEqual(running.over, [])
  for (const [key, ids] of sent)
    if (key.startsWith('o')) assert.deepEqual(running.ends.get(key), ids, `order of ${key}`)
  assert.deepEqual(await store.sql(`select key from :s.permit where cardinality(holders) > 0`), [])
  assert.deepEqual(
    await store.sql(
      'select (select count(*)::int from :s.ready) as ready, (select count(*)::int from :s.delayed) as delayed',
    ),
    [{ ready: 0, delayed: 0 }],
  )
})

test('a cancel of a job that waits and of one that runs has no key in its hands while it waits for the lease', async () => {
  const queue = 'cancel'
  const [running, waiting] = [keyed(queue, { limitKey: 'k' }), keyed(queue, { limitKey: 'k' })]
  await store.storage.enqueue([running])
  const worker = await TestWorker.registered(store.storage)
  await worker.claim({ limit: 1, queues: [{ queue, share: 1 }] })
  await store.storage.enqueue([waiting])
  // A settlement has the lease first, and then wants the key.
  const settling = await held(store, 'select from :s.lease for update')
  const cancelled = store.storage.control.cancel([waiting.id, running.id])
  await settling.waitedFor()
  await settling.client.query(`select from ${store.quoted}.permit where key = 'lk' for no key update nowait`)
  await settling.commit()
  assert.deepEqual(await cancelled, ['cancelled', 'signalled'])
})
