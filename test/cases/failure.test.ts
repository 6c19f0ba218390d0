/** Faults that other queues were reported to have (docs/cases.md): retries, back-off, dead letters, poison. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Backoff, JobHistory } from '../../src/core/job.js'
import { RETRY_DELAY_MS_MAX, retryDelayMs } from '../../src/core/retry.js'
import { defineJob, newJobId } from '../../src/index.js'
import type { QueueEvent } from '../../src/observe/events.js'
import { pause, poison } from '../process/worker-child.js'
import { Children } from '../support/children.js'
import { newJob, TestWorker } from '../support/jobs.js'
import type { Scratch } from '../support/postgres.js'
import { handler, type Kit } from '../worker/kit.js'
import { ended, kitOn, QUICK, queueOn, staged, until } from './kit.js'

const LOWS = 100

/** One urgent job that fails once, before a hundred low ones; what a worker with one slot told of it all. */
async function urgentAmongLow(
  store: Scratch,
  again: (kit: Kit, id: string) => Promise<unknown>,
  retry: object,
): Promise<QueueEvent[]> {
  const kit = kitOn(store.storage)
  const own = queueOn(kit)
  const urgent = defineJob<null>('urgent', { queue: 'queue', priority: 'critical', retry })
  const low = defineJob<null>('kind', { queue: 'queue', priority: 'low' })
  await own.purge('queue')
  const idempotencyKey = newJobId()
  const { id } = await own.enqueue(urgent, null, { idempotencyKey })
  await own.enqueueMany(Array.from({ length: LOWS }, () => low.with(null)))
  let runs = 0
  const fail = (): void => {
    runs += 1
    if (runs === 1) throw new Error('once')
  }
  const slow = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))
  const handlers = [handler(fail, { kind: 'urgent' }), handler(slow)]
  const running = kit.worker(handlers, { concurrency: 1, prefetchWindow: 0 })
  await running.start()
  await kit.next('job.failed')
  await again(kit, id)
  const [view] = await ended(own, [id])
  assert.deepEqual([view!.state, view!.priority, view!.spec.idempotencyKey], ['completed', 12, idempotencyKey])
  await running.stop()
  return kit.events
}

/** How many low jobs started from this event of the urgent one on until it ran again. */
function lowsBetween(events: QueueEvent[], from: QueueEvent['type']): number {
  const begin = events.findIndex((event) => event.type === from && 'kind' in event && event.kind === 'urgent')
  const end = events.findLastIndex((event) => event.type === 'job.started' && event.kind === 'urgent')
  assert.ok(begin >= 0 && end > begin, `${begin} ${end}`)
  return events.slice(begin, end).filter((event) => event.type === 'job.started' && event.kind === 'kind').length
}

test('B90: a retry at once, a delayed or hurried one and a redrive keep priority and key, and go before all low jobs that wait', async (t) => {
  const { store } = await staged(t)
  const at = (base: number | string) => ({ backoff: { type: 'fixed', base, jitter: 0 } })
  const nothing = async (): Promise<void> => {}
  const ways: [object, (kit: Kit, id: string) => Promise<unknown>, QueueEvent['type']][] = [
    [at(0), nothing, 'job.promoted'],
    [at(50), nothing, 'job.promoted'],
    [at('1h'), (kit, id) => queueOn(kit).retry(id), 'job.retried'],
    [{ attempts: 1 }, (kit, id) => queueOn(kit).redrive(id), 'job.redriven'],
  ]
  for (const [retry, again, back] of ways) {
    const events = await urgentAmongLow(store, again, retry)
    const first = lowsBetween(events, back)
    // One slot: a claim that was under way when the job was ready again may have brought one low job.
    assert.ok(first <= 1, `${back}: ${first} low jobs went first`)
    assert.ok(lowsBetween(events, 'job.failed') < LOWS, 'nothing was left to go before')
  }
})

/** The ends of the range that jitter draws from. */
const CHANCES = [0, 1 - 2 ** -53]
const STORED = [1, 31, 64, 1_100, 10_000]

function backoffOf(base: string, factor: number, cap?: string): Backoff {
  const backoff = { base, factor, ...(cap === undefined ? {} : { cap }) }
  return defineJob('kind', { retry: { attempts: 10_000, backoff } }).spec.backoff
}

test('B88: whatever base, factor, jitter and attempt, a delay is finite, never shrinks, keeps to its cap, and is stored', async (t) => {
  const { store } = await staged(t)
  const worker = await TestWorker.registered(store.storage)
  for (const base of ['1s', '10s'])
    for (const factor of [2, 10])
      for (const cap of [undefined, '366d']) {
        const backoff = backoffOf(base, factor, cap) as Extract<Backoff, { type: 'exponential' }>
        assert.equal(backoff.capMs, cap === undefined ? 3_600_000 : 366 * 86_400_000)
        for (const random of CHANCES) {
          let before = 0
          for (let attempt = 1; attempt <= 10_000; attempt++) {
            const delayMs = retryDelayMs(backoff, attempt, random)
            const plainMs = Math.min(backoff.capMs, backoff.baseMs * factor ** (attempt - 1))
            assert.ok(Number.isSafeInteger(delayMs) && delayMs >= before, `attempt ${attempt}: ${before}, ${delayMs}`)
            assert.ok(delayMs >= Math.floor(plainMs * 0.75))
            assert.ok(delayMs <= Math.min(RETRY_DELAY_MS_MAX, Math.ceil(plainMs * 1.25)))
            before = delayMs
            if (STORED.includes(attempt)) await storedDelay(store, worker, delayMs)
          }
        }
      }
})

/** A failed job waits for so long, also by the store. */
async function storedDelay({ storage }: Scratch, worker: TestWorker, delayMs: number): Promise<void> {
  const job = newJob()
  await storage.enqueue([job])
  const { leases, nowMs } = await worker.claim({ limit: 1 })
  const history: JobHistory = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  const settlement = { fence: leases[0]!.fence, ordinal: 0, to: 'delayed', delayMs, suspect: false, history } as const
  assert.deepEqual(await storage.settle([settlement]), ['ok'])
  const [view] = await storage.inspect.get([job.id])
  const waitsMs = view!.dueAt! - nowMs
  assert.ok(waitsMs >= delayMs && waitsMs < delayMs + 60_000, `${waitsMs} of ${delayMs} ms`)
}

const ENDS = ['throws', 'crashes', 'times out', 'unreadable'] as const

/** They wait more than they work. */
describe('the ends of jobs', { concurrency: 2 }, () => {
  test('B91, B93: two jobs that kill their workers among a thousand good ones: backed off, quarantined, countable, redrivable; the good ones end', async (t) => {
    const { store, queue } = await staged(t)
    const children = new Children(store)
    try {
      const poisons = await Promise.all((['at once', 'late'] as const).map((how) => queue.enqueue(poison, { how })))
      const good = await queue.enqueueMany(
        Array.from({ length: 1_000 }, (_, n) => pause.with({ name: `good-${n}`, ms: 5 })),
      )
      const stop = await children.keep(2, QUICK)
      const views = await ended(
        queue,
        poisons.map(({ id }) => id),
      )
      const goodViews = await ended(
        queue,
        good.map((one) => ('id' in one ? one.id! : '')),
      )
      stop()
      assert.deepEqual(new Set(goodViews.map(({ state }) => state)), new Set(['completed']))
      for (const { state, reason, history } of views) {
        assert.deepEqual([state, reason, history!.crashesAlone], ['dead', 'poison', 2])
        const crashes = history!.entries.filter(({ outcome }) => outcome === 'crashed')
        assert.equal(crashes.length, history!.crashes)
        // The first crash may be the work of a neighbour, and the last one is followed by nothing; between them it waits.
        for (const { delayMs } of crashes.slice(1, -1)) assert.ok(delayMs! >= 75, `${delayMs} ms`)
      }
      // Once in each of the crashes that it was noted for, and not again and again from the head of its queue.
      const runs = children.lines('poison ').length
      assert.ok(runs >= 4 && runs <= views.reduce((total, { history }) => total + history!.crashes, 0), `${runs} runs`)
      await children.end()
      assert.deepEqual(await queue.redrive(poisons.map(({ id }) => id)), ['ok', 'ok'])
      const [again] = await Promise.all(poisons.map((job) => job.get()))
      assert.deepEqual([again!.state, again!.history!.crashes, again!.history!.redrives], ['ready', 0, 1])
    } finally {
      await children.end()
    }
  })

  test('B92: out of attempts by an error, a crash, a time-out or a bad payload, a job ends in one way: one event, one dead letter', async (t) => {
    const { store } = await staged(t)
    const kit = kitOn(store.storage)
    const own = queueOn(kit)
    const jobs = new Map<string, (typeof ENDS)[number]>()
    for (const end of ENDS) {
      const kind = defineJob<null>(end.replaceAll(' ', '-'), { queue: end.replaceAll(' ', '-'), timeout: '100ms' })
      jobs.set((await own.enqueue(kind, null, { retry: { attempts: 1 } })).id, end)
    }
    const doomed = new TestWorker(store.storage)
    const info = { name: 'doomed', queues: ['crashes'], concurrency: 1, leaseMs: 1_000, beatMs: 250 }
    await doomed.beat({ info })
    const { leases } = await doomed.claim({ queues: [{ queue: 'crashes', share: 1 }], kinds: ['crashes'] })
    const { fence } = leases[0]!
    await doomed.beat({ info, leases: [fence], started: [[fence, 0]] })
    const running = kit.worker(
      [
        handler(() => Promise.reject(new Error('broken')), { kind: 'throws', queue: 'throws' }),
        handler(() => {}, { kind: 'crashes', queue: 'crashes' }),
        handler((_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(1))), {
          kind: 'times-out',
          queue: 'times-out',
        }),
        handler(() => {}, {
          kind: 'unreadable',
          queue: 'unreadable',
          parse: () => assert.fail('payload.n is missing'),
        }),
      ],
      QUICK,
    )
    await running.start()
    const views = await ended(own, [...jobs.keys()])
    await until(async () => kit.all('job.dead').length >= ENDS.length)
    await running.stop()
    const letters = new Map<string, string>()
    for await (const { id, reason } of own.jobs({ state: 'dead' })) letters.set(id, reason!)
    const told = kit.all('job.dead').map(({ jobId, reason }) => [jobId, reason])
    assert.deepEqual(told.toSorted(), [...letters].toSorted())
    assert.deepEqual([...letters.keys()].toSorted(), [...jobs.keys()].toSorted())
    for (const view of views) {
      assert.deepEqual([view.state, view.reason, view.history!.attempts], ['dead', 'failed', 1])
      const last = view.history!.entries.at(-1)!
      const word = { throws: 'failed', crashes: 'crashed', 'times out': 'timed out', unreadable: 'failed' } as const
      assert.equal(last.outcome, word[jobs.get(view.id)!])
      assert.ok(last.error !== undefined || last.note !== undefined, 'nothing says why')
    }
  })
})
