/** Beats and leases: lost ones, doubtful ones, workers written off, take-over, suspects, at-most-once. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { HandlerContext } from '../../src/core/handler.js'
import type { Worker } from '../../src/worker/index.js'
import type { WorkerOptions } from '../../src/worker/options.js'
import { changed, Gate, handler, Kit, virtualKit } from './kit.js'
import { makeSuspect, type Process, processOn, QUICK } from './process.js'

test('D7: what a dead worker held runs again elsewhere, with the crash noted', async () => {
  const { time, kit } = virtualKit()
  const a = processOn(kit)
  const ids = await kit.enqueue(3)
  const dying = a.kit.worker([handler(() => new Promise(() => {}))], QUICK)
  await dying.start()
  await time.advance(50)
  const deadWorker = dying.id!
  const other = kit.worker([handler()], QUICK)
  await other.start()
  await time.advance(1_500)
  a.process.alive = false
  await time.advance(8_000)
  for (const view of await kit.views(ids)) {
    assert.equal(view!.state, 'completed')
    assert.equal(view!.history!.crashes, 1)
    assert.equal(view!.history!.attempts, 2)
  }
  assert.equal(kit.all('job.crashed').length, 3)
  assert.deepEqual(kit.all('worker.took over')[0]!.deadWorker, deadWorker)
  await time.runUntil(Promise.all([other.stop(), dying.stop({ grace: 0 })]))
})

test('B01: the late end of a worker that lost its lease unnoticed is refused, and told once', async () => {
  const { time, kit } = virtualKit()
  let cut = false
  const beatless = new Kit(
    time,
    changed(kit.storage, { beat: (beat) => (cut ? new Promise(() => {}) : kit.storage.beat(beat)) }),
  )
  let aborted = false
  const first = beatless.worker(
    [
      handler(async (_, { signal }) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        await time.sleep(6_000)
        return 'first'
      }),
    ],
    QUICK,
  )
  const [id] = await kit.enqueue()
  await first.start()
  await time.advance(50)
  const second = kit.worker([handler(() => 'second')], QUICK)
  await second.start()
  await time.advance(1_500)
  cut = true
  await time.advance(8_000)
  const view = await kit.view(id!)
  assert.deepEqual([view.state, view.result], ['completed', 'second'])
  assert.equal(aborted, true)
  assert.equal(beatless.all('job.lost').length, 1)
  assert.equal(beatless.all('job.completed').length, 0)
  assert.equal(beatless.all('worker.leases lost').length, 1)
  cut = false
  await time.runUntil(Promise.all([first.stop({ grace: 0 }), second.stop()]))
})

test('in doubt nothing starts; when beats are answered again and the leases are still ours, work goes on', async () => {
  const { time, kit } = virtualKit()
  let cut = false
  const beatless = new Kit(
    time,
    changed(kit.storage, { beat: (beat) => (cut ? Promise.reject(new Error('cut')) : kit.storage.beat(beat)) }),
  )
  let reason: string | undefined
  const worker = beatless.worker(
    [
      handler(async (_, { signal }) => {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))).catch(
          (error: { code: string }) => {
            reason ??= error.code
            throw error
          },
        )
      }),
      handler(() => {}, { kind: 'later' }),
    ],
    QUICK,
  )
  const [id] = await kit.enqueue()
  await worker.start()
  await time.advance(50)
  cut = true
  await time.advance(1_500)
  assert.equal(reason, 'LEASE_LOST')
  await kit.enqueue(1, { kind: 'later' })
  await time.advance(2_000)
  assert.equal(beatless.all('job.started').length, 1)
  assert.equal(worker.health().status, 'degraded')
  cut = false
  await time.advance(2_000)
  assert.equal(beatless.all('job.completed').length, 1)
  // Aborted by our own doubt, while the lease was still held: no attempt was used.
  const { history } = await kit.view(id!)
  assert.equal(history!.attempts, 0)
  assert.equal(history!.entries[0]!.outcome, 'given back')
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('B20: a worker that was written off takes a new identity and works on; its old jobs are not started', async () => {
  const { time, kit } = virtualKit()
  const a = processOn(kit)
  const gate = new Gate()
  const frozen = a.kit.worker([handler(() => gate.passed)], { ...QUICK, concurrency: 1, prefetchWindow: '10s' })
  const ids = await kit.enqueue(3)
  await frozen.start()
  await time.advance(50)
  const before = frozen.id
  assert.equal(frozen.health().prefetched, 2)
  const other = kit.worker([handler()], QUICK)
  await other.start()
  await time.advance(1_500)
  a.process.alive = false
  await time.advance(10_000)
  assert.ok((await kit.views(ids)).every((view) => view!.state === 'completed'))
  a.process.alive = true
  gate.open()
  await time.advance(3_000)
  assert.notEqual(frozen.id, before)
  assert.equal(a.kit.all('worker.written off').length, 1)
  assert.equal(a.kit.all('job.completed').length, 0)
  await time.runUntil(other.stop())
  await kit.enqueue()
  await time.advance(1_000)
  assert.equal(a.kit.all('job.completed').length, 1)
  await time.runUntil(frozen.stop())
})

test('a worker that drains while its last leases are lost does not wait for their end', async () => {
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: async (beat) => ({ ...(await storage.beat(beat)), lost: lose ? [...beat.leases] : [] }),
    }),
  )
  let lose = false
  await kit.enqueue(3)
  const worker = kit.worker([handler(() => new Promise(() => {}))], { ...QUICK, concurrency: 2 })
  await worker.start()
  await time.advance(50)
  const startedAt = time.monotonic()
  const stopped = worker.stop()
  lose = true
  await time.runUntil(stopped)
  assert.ok(time.monotonic() - startedAt < 1_000)
  assert.equal(kit.all('job.lost').length, 2)
})

test('no outage makes everybody take over from everybody', async () => {
  const { time, kit } = virtualKit()
  let down = false
  const store = changed(kit.storage, {
    beat: (beat) => (down ? Promise.reject(new Error('down')) : kit.storage.beat(beat)),
    claim: (request) => (down ? Promise.reject(new Error('down')) : kit.storage.claim(request)),
    settle: (settlements) => (down ? Promise.reject(new Error('down')) : kit.storage.settle(settlements)),
    takeOver: (request) => (down ? Promise.reject(new Error('down')) : kit.storage.takeOver(request)),
  })
  const kits = [new Kit(time, store), new Kit(time, store)]
  await kit.enqueue(20)
  const workers = kits.map((one) => one.worker([handler(() => time.sleep(15_000))], QUICK))
  await Promise.all(workers.map((worker) => worker.start()))
  await time.advance(3_000)
  down = true
  await time.advance(6_000)
  down = false
  await time.advance(15_000)
  const events = kits.flatMap((one) => one.events.map(({ type }) => type))
  assert.equal(events.filter((type) => type === 'job.crashed').length, 0)
  assert.equal(events.filter((type) => type === 'job.completed').length, 20)
  await time.runUntil(Promise.all(workers.map((worker) => worker.stop({ grace: 0 }))))
})

test('an at-most-once job is never started twice, whatever happens to its worker', async () => {
  for (const when of ['before the ack', 'while it runs']) {
    const { time, kit } = virtualKit()
    const a = processOn(kit)
    let starts = 0
    const run = (): Promise<never> => {
      starts += 1
      return new Promise(() => {})
    }
    const once = handler(run, { delivery: 'at-most-once' })
    const dying = a.kit.worker([once], QUICK)
    const [id] = await kit.enqueue(1, { spec: { delivery: 'at-most-once' } })
    if (when === 'before the ack') {
      const { settle } = kit.storage
      a.kit.storage.settle = settle
      Object.defineProperty(a.process, 'alive', { value: true, writable: true })
    }
    await dying.start()
    await time.advance(when === 'before the ack' ? 1 : 50)
    a.process.alive = false
    const other = kit.worker([handler(() => void starts++, { delivery: 'at-most-once' })], QUICK)
    await other.start()
    await time.advance(15_000)
    const view = await kit.view(id!)
    assert.equal(starts, 1, when)
    if (when === 'while it runs') assert.deepEqual([view.state, view.reason], ['dead', 'lost'])
    else assert.equal(view.state, 'completed')
    await time.runUntil(Promise.all([other.stop(), dying.stop({ grace: 0 })]))
  }
})

test('an at-most-once job whose start the store refuses does not run', async () => {
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      settle: async (settlements) =>
        settlements.some(({ to }) => to === 'started') ? settlements.map(() => 'lost') : storage.settle(settlements),
    }),
  )
  let starts = 0
  await kit.enqueue(1, { spec: { delivery: 'at-most-once' } })
  const worker = kit.worker([handler(() => void starts++, { delivery: 'at-most-once' })])
  await worker.start()
  await time.advance(1_000)
  assert.equal(starts, 0)
  assert.equal(kit.all('job.lost').length, 1)
  await time.runUntil(worker.stop())
})

/** Workers that are started anew whenever a poison job kills them; a fleet under a supervisor. */
class Fleet {
  readonly kits: Kit[] = []
  private readonly processes: { process: Process; worker: Worker }[] = []

  constructor(private readonly kit: Kit) {}

  /** Runs handlers in a new process; `poison` kills it when it runs such a job. */
  async spawn(
    handlers: (die: () => Promise<never>) => ReturnType<typeof handler>[],
    options: WorkerOptions,
  ): Promise<void> {
    const { process, kit } = processOn(this.kit)
    const die = (): Promise<never> => {
      if (process.alive) {
        process.alive = false
        this.kit.env.timer(500, () => void this.spawn(handlers, options))
      }
      return new Promise(() => {})
    }
    const worker = kit.worker(handlers(die), options)
    this.kits.push(kit)
    this.processes.push({ process, worker })
    await worker.start()
  }

  async stop(): Promise<void> {
    for (const { worker } of this.processes) void worker.stop({ grace: 0 })
    await Promise.all(this.processes.map(({ worker }) => worker.stop({ grace: 0 })))
  }
}

test('F4, B93: two poison jobs among hundreds: the good ones end, the poison is quarantined, no neighbour is', async () => {
  const { time, kit } = virtualKit()
  const fleet = new Fleet(kit)
  const good = await kit.enqueue(150)
  const poison = await kit.enqueue(2, {
    kind: 'poison',
    spec: { backoff: { type: 'fixed', baseMs: 1_000, jitter: 0 } },
  })
  const more = await kit.enqueue(150)
  const handlers = (die: () => Promise<never>) => [
    handler((_: unknown, { signal }: HandlerContext) => time.sleep(40, signal)),
    handler(() => die(), { kind: 'poison' }),
  ]
  const options: WorkerOptions = { ...QUICK, concurrency: 5 }
  await fleet.spawn(handlers, options)
  await fleet.spawn(handlers, options)
  await time.advance(120_000)
  const ended = await kit.views([...good, ...more])
  assert.deepEqual(
    ended.filter((view) => view!.state !== 'completed').map((view) => view!.state),
    [],
  )
  for (const view of await kit.views(poison)) {
    assert.deepEqual([view!.state, view!.reason], ['dead', 'poison'])
    assert.equal(view!.history!.crashesAlone, 2)
  }
  await time.runUntil(fleet.stop())
})

test('a suspect runs alone in a busy worker: what ran ends, what waited goes back, and then work goes on', async () => {
  const { time, kit } = virtualKit()
  const suspect = await makeSuspect(kit, time, 20_000)
  const beside: number[] = []
  let running = 0
  let worker: Worker | undefined
  const alone = handler(
    async () => {
      beside.push(running)
      await time.sleep(2_000)
      beside.push(running, worker!.health().prefetched, worker!.health().unconfirmed)
    },
    { kind: 'suspect' },
  )
  const normal = handler(async () => {
    running += 1
    await time.sleep(80)
    running -= 1
  })
  await kit.enqueue(5_000)
  worker = kit.worker([alone, normal])
  await worker.start()
  await time.advance(60_000)
  assert.equal((await kit.view(suspect)).state, 'completed')
  assert.deepEqual(beside, [0, 0, 0, 0])
  assert.equal(kit.all('job.completed').length, 5_001)
  await time.runUntil(worker.stop())
})

test('a worker in which the code of an ended attempt still runs offers to run no suspect', async () => {
  const offers: boolean[] = []
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      claim: (request) => {
        offers.push(request.suspects)
        return storage.claim(request)
      },
    }),
  )
  const gate = new Gate()
  await kit.enqueue(1, { spec: { timeoutMs: 1_000, attempts: 1 } })
  const worker = kit.worker([handler(() => gate.passed)])
  await worker.start()
  await time.advance(1_500)
  offers.splice(0)
  await time.advance(20_000)
  assert.ok(offers.length > 0 && !offers.includes(true))
  gate.open()
  await time.advance(20_000)
  assert.ok(offers.includes(true))
  await time.runUntil(worker.stop())
})

test('a blocked loop is told, and starts nothing stale when it wakes', async () => {
  const { time, kit } = virtualKit()
  // Time jumps while nothing runs, as it does for a loop that is blocked or a process that is frozen.
  const env = Object.create(time) as typeof time
  let jumped = 0
  env.monotonic = () => time.monotonic() + jumped
  const blocked = new Kit(env, kit.storage)
  const worker = blocked.worker([handler(() => time.sleep(30_000))], {
    ...QUICK,
    concurrency: 1,
    prefetchWindow: '10s',
  })
  await kit.enqueue(3)
  await worker.start()
  await time.advance(100)
  jumped = 5_000
  await time.advance(300)
  assert.ok(blocked.all('worker.loop blocked')[0]!.blockedMs >= 4_500)
  await time.runUntil(worker.stop({ grace: 0 }))
})
