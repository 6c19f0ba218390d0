/** Faults that other queues were reported to have (docs/cases.md): crashes, leases, heartbeats. On a real store. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob, newJobId } from '../../src/index.js'
import type { Beat, BeatAnswer, Storage } from '../../src/storage/storage.js'
import { pause } from '../process/worker-child.js'
import { Children } from '../support/children.js'
import { INFO, newJob, TestWorker } from '../support/jobs.js'
import { changed, Gate, handler, type Kit } from '../worker/kit.js'
import {
  ended,
  inlineBeats,
  judge,
  killWaiting,
  kitOn,
  type Point,
  places,
  QUICK,
  settleCrashes,
  staged,
  startsReported,
  stopAt,
  sum,
  until,
  writtenOff,
} from './kit.js'

const kind = defineJob<{ n: number }, string>('kind', { queue: 'queue' })

/** They wait more than they work. */
describe('crashes, leases, heartbeats', { concurrency: 3 }, () => {
  test('B01: of a worker whose beats are cut and the one that took over, the second one decides', async (t) => {
    const { store, queue } = await staged(t)
    let cut = false
    const first = kitOn(
      inlineBeats(store.storage, (beat) => (cut ? new Promise<never>(() => {}) : store.storage.beat(beat))),
    )
    const second = kitOn(store.storage)
    const late = new Gate()
    let reason: string | undefined
    const losing = first.worker(
      [
        handler(async (_, { signal }) => {
          signal.addEventListener('abort', () => {
            reason = (signal.reason as { code: string }).code
          })
          await late.passed
          return 'first'
        }),
      ],
      { ...QUICK, concurrency: 1 },
    )
    await losing.start()
    const job = await queue.enqueue(kind, { n: 1 })
    await first.next('job.started')
    const winning = second.worker([handler(() => 'second')], QUICK)
    await winning.start()
    await startsReported(store, 1)
    cut = true
    await second.next('job.completed')
    late.open()
    await first.next('job.lost')
    const view = (await job.get())!
    assert.deepEqual([view.state, view.result], ['completed', 'second'])
    assert.equal(reason, 'LEASE_LOST')
    assert.equal(first.all('worker.leases lost').length, 1)
    cut = false
    await Promise.all([losing.stop({ grace: 0 }), winning.stop()])
    assert.equal(first.all('job.lost').length, 1)
    assert.equal(first.all('job.completed').length + second.all('job.completed').length, 1)
  })

  const STEPS: (Point | undefined)[] = [
    { table: 'claim_request', when: 'insert' },
    { table: 'lease', when: 'insert' },
    { table: 'lease', when: 'commit' },
    // Committed, and nobody reads the answer.
    undefined,
  ]

  for (const queues of [['one'], ['one', 'two', 'three']])
    test(`B03: killed at any step between taking jobs and recording the lease, over ${queues.length} queues, no job is lost`, async (t) => {
      const { store, queue } = await staged(t)
      const jobs = STEPS.flatMap(() => queues.map((name) => newJob({ queue: name })))
      await store.storage.enqueue(jobs)
      for (const step of STEPS) {
        const storage = store.open()
        const doomed = new TestWorker(storage)
        const info = { name: 'doomed', queues, concurrency: 1, leaseMs: 1_000, beatMs: 250 }
        await doomed.beat({ info })
        const point = step && (await stopAt(store, step))
        const limit = queues.length
        const claim = doomed.claim({ limit, queues: queues.map((name) => ({ queue: name, share: 1 })) })
        if (point) {
          const failed = assert.rejects(claim)
          await killWaiting(store)
          await failed
          await point.rollback()
          assert.deepEqual(await places(store), { ready: jobs.length }, `${step.table} ${step.when}`)
        } else assert.equal((await claim).leases.flatMap((lease) => lease.jobs).length, limit)
        assert.equal(sum(await places(store)), jobs.length)
      }
      const counts = await Promise.all(queues.map((name) => queue.counts(name)))
      const listed = counts.flatMap((count) => Object.values(count)).reduce((total, { count }) => total + count, 0)
      assert.equal(listed, jobs.length, 'a job is in a place that no call lists')
      const heir = kitOn(store.storage)
      const running = heir.worker([handler()], { ...QUICK, queues })
      await running.start()
      const views = await ended(
        queue,
        jobs.map(({ id }) => id),
      )
      await running.stop()
      assert.deepEqual(new Set(views.map(({ state }) => state)), new Set(['completed']))
      assert.equal(heir.all('job.started').length, jobs.length)
      assert.equal(views.filter(({ history }) => history?.crashes === 1).length, queues.length)
    })

  test('B04, B08: whatever a killed worker ran is recovered by one rule: it used an attempt, and only the last one is the end', async (t) => {
    const { store, queue } = await staged(t)
    const children = new Children(store)
    try {
      const doomed = await children.start(QUICK)
      const payload = (name: string) => ({ name: `b04-${name}`, ms: 1_500 })
      const jobs = {
        immediate: await queue.enqueue(pause, payload('immediate')),
        delayed: await queue.enqueue(pause, payload('delayed'), { delay: '50ms' }),
        fiveAttempts: await queue.enqueue(pause, payload('five'), { retry: { attempts: 5 } }),
        lastAttempt: await queue.enqueue(pause, payload('last'), { retry: { attempts: 1 } }),
      }
      const members = await queue.enqueueMany([1, 2].map((n) => pause.with(payload(`member-${n}`))))
      await children.until('start b04-', 6)
      await startsReported(store, 6)
      // While they run, however long another process takes to start.
      await children.kill(doomed)
      await children.start(QUICK)
      // Between its crash and its second run it is pending, with one attempt of five used.
      const five = await until(async () => {
        const view = await jobs.fiveAttempts.get()
        return view?.history?.crashes === 1 && view
      })
      assert.notEqual(five.state, 'dead')
      const ids = [...Object.values(jobs).map(({ id }) => id), ...members.map((one) => ('id' in one ? one.id! : ''))]
      for (const view of await ended(queue, ids)) {
        const last = view.id === jobs.lastAttempt.id
        assert.deepEqual([view.state, view.reason], last ? ['dead', 'failed'] : ['completed', undefined])
        const [crash] = view.history!.entries
        assert.deepEqual([crash!.outcome, crash!.attempt], ['crashed', 1])
        assert.equal(view.history!.attempts, last ? 1 : 2)
      }
      assert.equal(children.lines('end b04-').length, 5)
    } finally {
      await children.end()
    }
  })

  test('B06: a live handler that was judged dead and out of attempts hears of it with its next beat, and its end is refused', async (t) => {
    const { store, queue } = await staged(t)
    const answers: BeatAnswer['status'][] = []
    const beat = async (one: Beat): Promise<BeatAnswer> => {
      const answer = await store.storage.beat(one)
      answers.push(answer.status)
      return answer
    }
    const kit = kitOn(inlineBeats(store.storage, beat))
    const heard = new Gate<BeatAnswer['status'][]>()
    const late = new Gate()
    let runs = 0
    const running = kit.worker(
      [
        handler(async (_, { signal }) => {
          runs += 1
          if (runs > 1) return 'second'
          signal.addEventListener('abort', () => heard.open([...answers]))
          await late.passed
          return 'first'
        }),
      ],
      { lease: '10s', beat: '250ms' },
    )
    await running.start()
    const key = { idempotencyKey: 'meaning', retry: { attempts: 1 } }
    const job = await queue.enqueue(kind, { n: 1 }, key)
    await kit.next('job.started')
    await startsReported(store, 1)
    const sweeper = await judge(store)
    answers.length = 0
    await settleCrashes(store, sweeper, await writtenOff(store, sweeper, running.id!))
    // Beats may have been answered before the judgement; the first one after it is the last one of this identity.
    const untilHeard = await heard.passed
    assert.equal(untilHeard.indexOf('gone'), untilHeard.length - 1)
    await kit.next('job.lost')
    assert.deepEqual([(await job.get())!.state, (await job.get())!.reason], ['dead', 'failed'])
    // The meaning is taken by the dead letter: nothing new runs beside the old code, until somebody says so.
    const again = await queue.enqueue(kind, { n: 1 }, key)
    assert.deepEqual([again.id, again.duplicate], [job.id, true])
    assert.equal(await queue.redrive(job.id), 'ok')
    late.open()
    const [view] = await ended(queue, [job.id])
    assert.deepEqual([view!.state, view!.result], ['completed', 'second'])
    await running.stop()
    assert.equal(kit.all('job.lost').length, 1)
    assert.equal(kit.all('worker.written off').length, 1)
    assert.equal(kit.all('job.completed').length, 1)
  })

  test('B09: a job delayed for ten leases before three idle workers starts once, not early, and is held by nobody meanwhile', async (t) => {
    const { store, queue } = await staged(t)
    const kits = [kitOn(store.storage), kitOn(store.storage), kitOn(store.storage)]
    const workers = kits.map((kit) => kit.worker([handler()], { lease: '200ms', beat: '50ms' }))
    await Promise.all(workers.map((running) => running.start()))
    const job = await queue.enqueue(kind, { n: 1 }, { delay: '2s' })
    const { dueAt } = (await job.get())!
    const seen = new Map<string, number>()
    const view = await until(async () => {
      const [held] = await store.sql('select count(*)::int as n from :s.lease')
      const now = (await job.get())!
      seen.set(now.state, (seen.get(now.state) ?? 0) + 1)
      // Looked at before the state was: what is delayed afterwards was delayed then.
      if (now.state === 'delayed') assert.equal(held!.n, 0)
      return now.endedAt !== null && now
    })
    assert.ok(seen.get('delayed')! > 10, 'nobody looked while it waited')
    assert.ok(view.startedAt! >= dueAt!, `due at ${dueAt}, started at ${view.startedAt}`)
    await Promise.all(workers.map((running) => running.stop()))
    assert.equal(kits.flatMap((kit) => kit.all('job.started')).length, 1)
  })

  test('B12: the failure of a job that is somebody else’s by now is reported once, lost, and the slot is free', async (t) => {
    const { store, queue } = await staged(t)
    const sent: number[] = []
    const recording: Storage = changed(store.storage, {
      claim: (request) => {
        sent.push(...(request.finished ?? []).map(({ fence }) => fence))
        return store.storage.claim(request)
      },
      settle: (settlements) => {
        sent.push(...settlements.map(({ fence }) => fence))
        return store.storage.settle(settlements)
      },
    })
    const kit: Kit = kitOn(recording)
    const failing = new Gate()
    // No beat comes in between: the settlement itself has to find out.
    const running = kit.worker([handler(() => failing.passed), handler(() => {}, { kind: 'other' })], {
      lease: '600s',
      beat: '200s',
      concurrency: 1,
      // Claimed ahead, the other job would be taken over as well.
      prefetchWindow: 0,
      upkeep: false,
    })
    await running.start()
    await queue.enqueue(kind, { n: 1 })
    const { fence } = await kit.next('job.started')
    const other = await queue.enqueue(defineJob('other', { queue: 'queue' }))
    const sweeper = await judge(store)
    await writtenOff(store, sweeper, running.id!)
    failing.fail(new Error('too late'))
    const [view] = await ended(queue, [other.id])
    assert.equal(view!.state, 'completed')
    await running.stop()
    assert.equal(sent.filter((one) => one === fence).length, 1)
    assert.deepEqual([kit.all('job.lost').length, kit.all('job.failed').length], [1, 0])
    assert.equal(running.health().running, 0)
  })

  test('B14: a sweeper that is killed in the middle of its sweep, or before it settles, leaves everything to the next one', async (t) => {
    const { store, queue } = await staged(t)
    // Whose lease has ended is said below, by their rows: nothing here goes by how long the test takes.
    const info = { ...INFO, leaseMs: 600_000, beatMs: 200_000 }
    const jobs = [newJob(), newJob()]
    await store.storage.enqueue(jobs)
    const dead = new TestWorker(store.storage)
    await dead.beat({ info })
    await dead.claim({ limit: 2 })
    const sweepers = [new TestWorker(store.open()), new TestWorker(store.open())]
    for (const sweeper of sweepers) await sweeper.beat({ info })
    await store.sql(`update :s.worker set steady_since = 0`)
    await store.sql(`update :s.worker set seen = 0 where id = $1`, [dead.id])
    const point = await stopAt(store, { table: 'lease', when: 'update' })
    const failed = assert.rejects(sweepers[0]!.storage.takeOver({ worker: sweepers[0]!.id, limit: 10 }))
    await killWaiting(store)
    await failed
    await point.rollback()
    assert.deepEqual(await places(store), { running: 2 })
    const { leases } = await sweepers[1]!.storage.takeOver({ worker: sweepers[1]!.id, limit: 10 })
    assert.equal(leases.length, 1)
    await store.sql(`update :s.worker set seen = 0`)
    // And that is the last of it. From here on a worker with a lease of 1 s and the usual sweep each 2 s is alone.
    const heir = kitOn(store.storage)
    const running = heir.worker([handler()], QUICK)
    await running.start()
    const views = await ended(
      queue,
      jobs.map(({ id }) => id),
    )
    await running.stop()
    for (const view of views) assert.deepEqual([view.state, view.history!.crashes], ['completed', 1])
  })

  test('B19: after a double run of a job with an id of its own that leaves no record, the id can be used again', async (t) => {
    const { store, queue } = await staged(t)
    const first = kitOn(store.storage)
    const second = kitOn(store.storage)
    const late = new Gate()
    const unkept = defineJob<{ n: number }>('kind', { queue: 'queue', keep: 'none' })
    const losing = first.worker([handler(() => late.passed)], { lease: '10s', beat: '250ms', concurrency: 1 })
    await losing.start()
    const id = newJobId()
    await queue.enqueue(unkept, { n: 1 }, { id })
    await first.next('job.started')
    const sweeper = await judge(store)
    await settleCrashes(store, sweeper, await writtenOff(store, sweeper, losing.id!))
    const winning = second.worker([handler()], QUICK)
    await winning.start()
    await second.next('job.completed')
    late.open()
    await first.next('job.lost')
    await losing.stop()
    assert.deepEqual(await places(store), {})
    assert.equal(await queue.get(id), null)
    const again = await queue.enqueue(unkept, { n: 1 }, { id })
    assert.deepEqual([again.id, again.duplicate], [id, false])
    await second.next('job.completed', 2)
    await winning.stop()
    assert.deepEqual(await places(store), {})
  })

  test('B20: a frozen worker that was written off comes back under a new identity; to the old one nothing is given', async (t) => {
    const { store, queue } = await staged(t)
    const children = new Children(store)
    try {
      const frozen = await children.start(QUICK)
      const [before] = await until(async () => {
        const rows = await store.sql('select id from :s.worker')
        return rows.length === 1 && rows
      })
      const held = await queue.enqueue(pause, { name: 'held', ms: 600_000 })
      await children.until('start held', 1)
      frozen.kill('SIGSTOP')
      const other = await children.start(QUICK)
      await children.until('event {"type":"worker.took over"', 1)
      await queue.cancel(held.id)
      assert.equal(await children.kill(other, 'SIGTERM'), 0)
      const waiting = await queue.enqueueMany(
        Array.from({ length: 10 }, (_, n) => pause.with({ name: `thawed-${n}`, ms: 50 })),
      )
      frozen.kill('SIGCONT')
      const ownerless = new Set<unknown>()
      await until(async () => {
        const rows = await store.sql(
          'select l.worker from :s.lease l where l.worker = $1 or not exists (select from :s.worker w where w.id = l.worker)',
          [before!.id],
        )
        for (const row of rows) ownerless.add(row.worker)
        return children.lines('end thawed-').length === 10
      })
      assert.deepEqual([...ownerless], [])
      assert.equal(children.lines('event {"type":"worker.written off"').length, 1)
      assert.ok(children.lines('start thawed-').every((line) => line.endsWith(` ${frozen.pid}`)))
      const views = await ended(
        queue,
        waiting.map((one) => ('id' in one ? one.id! : '')),
      )
      for (const view of views) {
        assert.equal(view.state, 'completed')
        assert.notEqual(view.worker, before!.id)
      }
    } finally {
      await children.end()
    }
  })
})
