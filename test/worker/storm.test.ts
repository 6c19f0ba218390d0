/** Everything at once, on virtual time: slow and cut calls, frozen and killed workers, cancels, pauses. One seed, one story. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { QueueError } from '../../src/core/errors.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { Storage } from '../../src/storage/storage.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import type { Worker } from '../../src/worker/index.js'
import { handler, Kit } from './kit.js'

const SEEDS = Number(process.env.STORM_SEEDS ?? 12)
const FIRST_SEED = Number(process.env.STORM_FIRST ?? 1)
const JOBS = 150

/** A store behind a bad network, seen from one process. */
class Network {
  cutShare = 0.05
  /** Calls arrive only once it is thawed, as of a frozen process. */
  frozen = false
  dead = false

  constructor(private readonly time: VirtualTime) {}

  see<T extends object>(store: T): T {
    return new Proxy(store, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target) as unknown
        if (key === 'upkeep') return this.see(value as object)
        if (typeof value !== 'function' || key === 'listen') return value
        return (...args: unknown[]) => this.send(() => value.apply(target, args) as Promise<unknown>)
      },
    })
  }

  private async send(call: () => Promise<unknown>): Promise<unknown> {
    const { time } = this
    await time.sleep(20 * time.random() ** 3)
    while (this.frozen && !this.dead) await time.sleep(100)
    if (this.dead) return new Promise(() => {})
    const lot = time.random()
    const broken = (): QueueError => new QueueError('OUTCOME_UNKNOWN', 'cut')
    if (lot < this.cutShare / 4) throw broken()
    if (lot < this.cutShare / 2) {
      time.timer(16_000 * time.random(), () => void call().catch(() => {}))
      return new Promise(() => {})
    }
    const answer = await call()
    if (lot < (this.cutShare * 3) / 4) throw broken()
    if (lot < this.cutShare) await call()
    await time.sleep(20 * time.random() ** 3)
    return answer
  }
}

interface Story {
  starts: Map<string, number>
  kits: Kit[]
  workers: { worker: Worker; network: Network }[]
}

function spawn(time: VirtualTime, storage: Storage, story: Story): void {
  const network = new Network(time)
  const kit = new Kit(time, network.see(storage))
  const run = async (payload: unknown, { id, signal }: { id: string; signal: AbortSignal }): Promise<void> => {
    story.starts.set(id, (story.starts.get(id) ?? 0) + 1)
    const { ms, fails, heeds } = payload as { ms: number; fails: boolean; heeds: boolean }
    await time.sleep(ms, heeds ? signal : undefined)
    if (fails || (heeds && signal.aborted)) throw new Error('failed')
  }
  const handlers = [handler(run), handler(run, { kind: 'once', delivery: 'at-most-once' })]
  const worker = kit.worker(handlers, { lease: '2s', beat: '500ms', concurrency: 4 })
  story.kits.push(kit)
  story.workers.push({ worker, network })
  void worker.start()
}

async function produce(time: VirtualTime, storage: Storage): Promise<string[]> {
  const kit = new Kit(time, storage)
  const ids: string[] = []
  for (let n = 0; n < JOBS; n++) {
    const once = time.random() < 0.15
    const payload = {
      ms: time.random() < 0.1 ? 3_000 : 100 * time.random(),
      fails: time.random() < 0.1,
      heeds: time.random() < 0.7,
    }
    const [id] = await kit.enqueue(1, {
      kind: once ? 'once' : 'kind',
      payload: JSON.stringify(payload),
      due: { delayMs: time.random() < 0.2 ? 10_000 * time.random() : 0 },
      spec: {
        delivery: once ? 'at-most-once' : 'at-least-once',
        timeoutMs: time.random() < 0.2 ? 1_500 : 60_000,
        attempts: 3,
        backoff: { type: 'fixed', baseMs: 500, jitter: 0.2 },
      },
    })
    ids.push(id!)
  }
  return ids
}

async function weather(time: VirtualTime, storage: Storage, story: Story, ids: string[]): Promise<void> {
  for (let hour = 0; hour < 60; hour++) {
    await time.advance(500)
    const one = story.workers[Math.floor(time.random() * story.workers.length)]!
    const lot = time.random()
    if (lot < 0.05) one.network.dead = true
    else if (lot < 0.15) {
      one.network.frozen = true
      time.timer(5_000 * time.random(), () => {
        one.network.frozen = false
      })
    } else if (lot < 0.25) await storage.control!.cancel([ids[Math.floor(time.random() * ids.length)]!])
    else if (lot < 0.3) void one.worker.stop({ grace: 2_000 * time.random() }).then(() => one.worker.start())
    else if (lot < 0.35) {
      await storage.control!.pause('queue')
      time.timer(2_000, () => void storage.control!.resume('queue'))
    }
    while (story.workers.filter(({ network }) => !network.dead).length < 3) spawn(time, storage, story)
  }
}

for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
  test(`storm ${seed}: every job ends, at-most-once ones start once, nothing is told twice or left behind`, async () => {
    const time = new VirtualTime({ seed })
    const storage = openMemory({ env: time })
    const story: Story = { starts: new Map(), kits: [], workers: [] }
    const ids = await produce(time, storage)
    for (let i = 0; i < 3; i++) spawn(time, storage, story)
    await weather(time, storage, story, ids)
    for (const { network } of story.workers) network.cutShare = 0
    await time.advance(120_000)

    const [views, events] = [await storage.inspect.get(ids), story.kits.flatMap((kit) => kit.events)]
    const unended = views.filter((view) => !['completed', 'dead', 'cancelled'].includes(view!.state))
    assert.deepEqual(unended, [])
    for (const [i, view] of views.entries()) {
      const id = ids[i]!
      const told = events.filter((event) => 'jobId' in event && event.jobId === id).map(({ type }) => type)
      assert.ok(told.filter((type) => type === 'job.completed').length <= 1, `${id}: ${told.join()}`)
      assert.ok(told.filter((type) => type === 'job.dead').length <= 1, `${id}: ${told.join()}`)
      if (view!.spec.delivery === 'at-most-once') assert.ok((story.starts.get(id) ?? 0) <= 1, `${id} started twice`)
      assert.ok(view!.history === null || view!.history.attempts <= 3)
    }
    await time.runUntil(Promise.all(story.workers.map(({ worker }) => worker.stop({ grace: '5s' }))))
    await time.advance(30_000)
    assert.equal(time.pending, 0)
  })
}
