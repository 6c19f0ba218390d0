/** Workers that die: killed, poisoned, stopped. Real processes on a real store; effects are counted outside of it. */
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { connect, type JobView, type Queue } from '../../src/index.js'
import { Children } from '../support/children.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { failing, once, pause, poison, spin } from './worker-child.js'

/** A short lease, so that these tests are; the defaults are tested in test/long. */
const QUICK = { lease: '1s', beat: '250ms' }

let store: Scratch
let queue: Queue
let children: Children

before(async () => {
  store = await scratch()
  queue = await connect(store.url, { schema: store.schema })
})
after(async () => {
  await queue.close()
  await store.drop()
})
beforeEach(() => {
  children = new Children(store)
})
afterEach(() => children.end())

async function ended(ids: readonly string[]): Promise<JobView[]> {
  for (;;) {
    const views = await Promise.all(ids.map((id) => queue.get(id)))
    if (views.every((view) => view?.endedAt != null)) return views as JobView[]
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

test('SIGKILL: what a worker held runs again in another one, and the history says why', async () => {
  const first = await children.start(QUICK)
  const jobs = await Promise.all([0, 1, 2].map((n) => queue.enqueue(pause, { name: `killed-${n}`, ms: 1_500 })))
  await children.until('start killed-', 3)
  // A beat reports the starts.
  await new Promise((resolve) => setTimeout(resolve, 600))
  await children.start(QUICK)
  await children.kill(first)
  const views = await ended(jobs.map((job) => job.id))
  for (const view of views) {
    assert.equal(view.state, 'completed')
    const [crash] = view.history!.entries
    assert.equal(crash!.outcome, 'crashed')
    assert.match(crash!.note!, /died/)
    assert.equal(view.history!.attempts, 2)
  }
  assert.equal(children.lines('end killed-').length, 3)
})

test('SIGKILL before the starts were reported: the crash is noted, and no attempt is lost', async () => {
  // Beats are so far apart that none reports the start.
  const first = await children.start({ lease: '3s', beat: '1400ms' })
  const job = await queue.enqueue(pause, { name: 'unreported', ms: 2_000 })
  await children.until('start unreported', 1)
  const killing = children.kill(first)
  await children.start(QUICK)
  await killing
  const [view] = await ended([job.id])
  const crash = view!.history!.entries[0]!
  assert.equal(crash.outcome, 'crashed')
  assert.equal(view!.history!.crashes, 1)
  // Should a beat have come in between after all, the history says so, and the attempt counts.
  assert.equal(view!.history!.attempts, crash.note!.includes('not reported') ? 1 : 2)
})

test('SIGTERM: running jobs finish, waiting ones are given back with no attempt used, exit code 0 (B21)', async () => {
  const child = await children.start({ concurrency: 5 })
  const jobs = await Promise.all(
    Array.from({ length: 105 }, (_, n) => queue.enqueue(pause, { name: `term-${n}`, ms: 1_000 })),
  )
  await children.until('start term-', 5)
  assert.equal(await children.kill(child, 'SIGTERM'), 0)
  const started = children.lines('start term-').length
  assert.equal(children.lines('end term-').length, started)
  const views = await Promise.all(jobs.map((job) => queue.get(job.id)))
  const waiting = views.filter((view) => view!.state === 'ready')
  assert.equal(waiting.length, 105 - started)
  assert.ok(waiting.every((view) => view!.history === null))
  await queue.purge('process')
})

test('SIGTERM with handlers that outlast the grace: they are aborted and start elsewhere at once (B22)', async () => {
  const child = await children.start({ shutdownGrace: '500ms', name: 'first' })
  const job = await queue.enqueue(pause, { name: 'long', ms: 60_000 })
  await children.until('start long', 1)
  assert.equal(await children.kill(child, 'SIGTERM'), 0)
  const view = await queue.get(job.id)
  assert.equal(view!.state, 'ready')
  assert.equal(view!.history!.attempts, 0)
  assert.equal(view!.history!.entries.at(-1)!.outcome, 'given back')
  await queue.cancel(job.id)
})

test('a job with 6 attempts that always fails is dead after exactly 6', async () => {
  await children.start()
  const job = await queue.enqueue(failing, { name: 'six' })
  const [view] = await ended([job.id])
  assert.equal(view!.state, 'dead')
  assert.equal(view!.reason, 'failed')
  assert.equal(children.lines('fail six').length, 6)
  assert.equal(view!.history!.entries.filter((entry) => entry.outcome === 'failed').length, 6)
})

test('at most once: killed after its start it is dead (lost) and never runs again', async () => {
  const child = await children.start(QUICK)
  const job = await queue.enqueue(once, { name: 'amo', ms: 60_000 })
  await children.until('start amo', 1)
  await children.kill(child)
  await children.start(QUICK)
  const [view] = await ended([job.id])
  assert.equal(view!.state, 'dead')
  assert.equal(view!.reason, 'lost')
  assert.equal(children.lines('start amo').length, 1)
  assert.equal(await queue.redrive(job.id), 'needs force')
})

for (const how of ['at once', 'late', 'loop'] as const)
  test(`a poison job that kills its worker (${how}) is quarantined, none of its 19 neighbours is`, async () => {
    const poisoned = await queue.enqueue(poison, { how })
    const neighbours = await Promise.all(
      Array.from({ length: 19 }, (_, n) => queue.enqueue(pause, { name: `${how}-${n}`, ms: 600 })),
    )
    const stop = await children.keep(1, QUICK)
    // A second worker takes over; the loop never ends by itself, so its process is ended when it was written off.
    await children.start({ ...QUICK, concurrency: 1, queues: ['elsewhere'] })
    const reaper = how === 'loop' ? reapLoops() : undefined
    const [view, ...others] = await ended([poisoned.id, ...neighbours.map((job) => job.id)])
    stop()
    clearInterval(reaper)
    assert.equal(view!.state, 'dead')
    assert.equal(view!.reason, 'poison')
    assert.equal(view!.history!.crashesAlone, 2)
    for (const other of others) assert.equal(other.state, 'completed', JSON.stringify(other.history))
  })

/** Ends processes whose loop has held them for longer than their lease, as a liveness probe would. */
function reapLoops(): NodeJS.Timeout {
  const seen = new Map<string, number>()
  return setInterval(() => {
    for (const line of children.lines('poison loop')) {
      const pid = line.split(' ').at(-1)!
      const since = seen.get(pid) ?? Date.now()
      seen.set(pid, since)
      if (Date.now() - since < 4_000) continue
      try {
        process.kill(Number(pid), 'SIGKILL')
      } catch {
        // It is gone.
      }
    }
  }, 250)
}

test('B16: a blocked event loop ends the lease; the late finish is refused once, short jobs are not lost', async () => {
  const blocked = await children.start(QUICK)
  const heir = await children.start(QUICK)
  const short = await Promise.all(
    Array.from({ length: 5 }, (_, n) => queue.enqueue(pause, { name: `short-${n}`, ms: 200 })),
  )
  const job = await queue.enqueue(spin, { name: 'b16', ms: 5_000 })
  const [view, ...others] = await ended([job.id, ...short.map(({ id }) => id)])
  assert.equal(view!.state, 'completed')
  assert.equal(view!.history!.entries[0]!.outcome, 'crashed')
  for (const other of others) assert.equal(other.state, 'completed')
  // The first process wakes, and finds that it was written off; its late end changes nothing.
  await children.until('spun b16', 2)
  await children.until('event {"type":"worker.written off"', 1)
  assert.equal((await queue.get(job.id))!.history!.entries.length, 2)
  assert.ok(blocked.exitCode === null && heir.exitCode === null)
})

test('no transaction is open while a handler runs, and a beat writes one row whatever the worker holds', async () => {
  await children.start({ lease: '4s', beat: '200ms' })
  await Promise.all(Array.from({ length: 15 }, (_, n) => queue.enqueue(pause, { name: `beat-${n}`, ms: 2_000 })))
  await children.until('start beat-', 15)
  const [open] = await store.sql(
    `select count(*)::int as n from pg_stat_activity where state like 'idle in transaction%' and query like '%' || $1 || '%'`,
    [store.schema],
  )
  assert.equal(open!.n, 0)
  const [before] = await store.sql('select sum(n) as beats, count(*)::int as workers from :s.worker')
  await children.until('end beat-', 15)
  const [later] = await store.sql('select sum(n) as beats from :s.worker')
  // About ten beats in two seconds, fifteen jobs held: one row for each beat, none for a job.
  assert.ok(Number(later!.beats) - Number(before!.beats) <= 15 * (before!.workers as number))
})
