/** The thread that beats, on real time; and what the main loop makes of its answers, on virtual time. */
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { BroadcastChannel } from 'node:worker_threads'
import { realEnv } from '../../src/core/env.js'
import { openMemory } from '../../src/storage/memory/index.js'
import type { Beat, Storage } from '../../src/storage/storage.js'
import type { TestBeats } from './beat-source.js'
import { changed, Gate, handler, Kit, virtualKit } from './kit.js'

/** A kit whose workers beat by a thread, and the beats that came. */
function threadKit(context: TestContext, more: { module?: string; diesAtBeat?: number } = {}) {
  const name = context.name
  const memory = openMemory()
  const beats: Beat[] = []
  const wire = new BroadcastChannel(name)
  context.after(() => wire.close())
  const waiting: { count: number; resolve: () => void }[] = []
  wire.onmessage = (event) => {
    const { id, beat } = (event as { data: { id: number; beat?: Beat } }).data
    if (!beat) return
    beats.push(beat)
    for (const one of waiting) if (beats.length >= one.count) one.resolve()
    void memory.beat(beat).then((answer) => wire.postMessage({ id, answer }))
  }
  const shared = new Int32Array(new SharedArrayBuffer(12))
  shared[1] = more.diesAtBeat ?? 0
  const data: TestBeats = { channel: name, shared }
  const module = more.module ?? new URL('./beat-source.js', import.meta.url).href
  const inline: Beat[] = []
  const storage: Storage = changed(memory, {
    beatSource: { module, data },
    beat: (beat) => {
      inline.push(beat)
      return memory.beat(beat)
    },
  })
  return {
    kit: new Kit(realEnv, storage),
    beats,
    inline,
    opened: () => shared[0]!,
    timeoutMs: () => shared[2]!,
    beaten: (count: number) =>
      beats.length >= count ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ count, resolve })),
  }
}

function spin(ms: number): void {
  const until = realEnv.monotonic() + ms
  while (realEnv.monotonic() < until);
}

test('beats come from a thread of their own: numbers rise, leases and starts are named, the thread ends with the worker', async (t) => {
  const { kit, beats, inline, beaten } = threadKit(t)
  const gate = new Gate()
  const [id] = await kit.enqueue()
  const worker = kit.worker([handler(() => gate.passed)], { beat: '50ms', lease: '5s' })
  await worker.start()
  const { fence } = await kit.next('job.started')
  await beaten(beats.length + 4)
  assert.deepEqual(beats.at(-1)!.leases, [fence])
  const [told] = beats.at(-1)!.started
  assert.deepEqual(told?.slice(0, 2), [fence, 0])
  assert.ok(told![2]! >= 0 && told![2]! <= 60_000, 'for how long it has run')
  assert.ok(beats.every(({ n }, i) => n === i + 1))
  assert.ok(beats.at(-1)!.mainLagMs < 1_000)
  gate.open()
  await kit.next('job.completed')
  await worker.stop()
  assert.equal((await kit.view(id!)).state, 'completed')
  assert.deepEqual(inline, [])
  const count = beats.length
  await realEnv.sleep(200)
  assert.equal(beats.length, count)
})

test('a beat of the thread is given no longer than an interval, and a quarter of a second at least', async (t) => {
  for (const [beat, timeoutMs] of [
    ['50ms', 250],
    ['400ms', 400],
  ] as const) {
    const made = threadKit(t)
    const worker = made.kit.worker([handler()], { beat, lease: '5s' })
    await worker.start()
    await made.beaten(1)
    assert.equal(made.timeoutMs(), timeoutMs)
    await worker.stop()
  }
})

test('B16: a blocked loop goes on beating, tells for how long it is silent, and is told of', async (t) => {
  const { kit, beats, beaten } = threadKit(t)
  const worker = kit.worker([handler(() => spin(1_600))], { beat: '100ms', lease: '10s' })
  await worker.start()
  await beaten(2)
  await kit.enqueue()
  const { blockedMs } = await kit.next('worker.loop blocked')
  assert.ok(blockedMs > 1_000)
  await kit.next('job.completed')
  // What was sent meanwhile reaches this store only now, as it lives in the loop that was blocked.
  await beaten(10)
  assert.ok(
    beats.some(({ mainLagMs }) => mainLagMs > 500),
    beats.map(({ mainLagMs }) => Math.round(mainLagMs)).join(),
  )
  await worker.stop()
  assert.equal(kit.all('job.lost').length, 0)
})

test('a thread that dies is replaced by another, whose beats are newer', async (t) => {
  const { kit, beats, beaten, opened } = threadKit(t, { diesAtBeat: 5 })
  const worker = kit.worker([handler()], { beat: '50ms', lease: '5s' })
  await worker.start()
  const id = worker.id
  await kit.next('store.unavailable')
  await beaten(beats.length + 3)
  assert.equal(opened(), 2)
  assert.ok(beats.at(-1)!.n > 1_000)
  await kit.enqueue(3)
  await kit.next('job.completed', 3)
  assert.equal(worker.id, id)
  await worker.stop()
})

test('where threads cannot work the beats go inline', async (t) => {
  const { kit, inline } = threadKit(t, { module: new URL('./no-such-module.js', import.meta.url).href })
  const worker = kit.worker([handler()], { beat: '50ms', lease: '5s' })
  await worker.start()
  await kit.enqueue(3)
  await kit.next('job.completed', 3)
  assert.ok(inline.length > 0)
  await worker.stop()
})

test('after a block longer than the lease nothing starts before a beat is answered that was sent afterwards', async () => {
  const { time, kit } = virtualKit()
  // For a loop that is blocked, or a process that is frozen, time jumps.
  const env = Object.create(time) as typeof time
  let jumped = 0
  env.monotonic = () => time.monotonic() + jumped
  const answers = new Gate()
  const held = changed(kit.storage, {
    beat: async (beat) => {
      if (jumped > 0) await answers.passed
      return kit.storage.beat(beat)
    },
  })
  const blocked = new Kit(env, held)
  const gate = new Gate()
  const worker = blocked.worker([handler(() => gate.passed)], {
    lease: '1s',
    beat: '300ms',
    concurrency: 1,
    prefetchWindow: '10s',
  })
  await kit.enqueue(2)
  await worker.start()
  await time.advance(100)
  assert.equal(worker.health().prefetched, 1)
  jumped = 5_000
  gate.open()
  await time.advance(50)
  assert.equal(blocked.all('job.started').length, 1)
  answers.open()
  await time.advance(500)
  assert.equal(blocked.all('job.started').length, 2)
  await time.runUntil(worker.stop({ grace: 0 }))
})

test('the first beat keeps its number until it is answered, as that one registers the worker', async () => {
  const sent: number[] = []
  let failures = 3
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: async (beat) => {
        sent.push(beat.n)
        if (failures-- > 0) throw new Error('not there yet')
        return storage.beat(beat)
      },
    }),
  )
  await kit.enqueue()
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(15_000)
  assert.deepEqual(sent.slice(0, 5), [1, 1, 1, 1, 2])
  assert.equal(kit.all('job.completed').length, 1)
  await time.runUntil(worker.stop())
})

test('beats that the store takes for old ones catch up with what it has seen', async () => {
  const sent: number[] = []
  const { time, kit } = virtualKit((storage) =>
    changed(storage, {
      beat: async (beat) => {
        sent.push(beat.n)
        const answer = await storage.beat(beat)
        return beat.n > 1 && beat.n < 1_500 ? { status: 'stale', lost: [], cancel: [], paused: [] } : answer
      },
    }),
  )
  const worker = kit.worker([handler()])
  await worker.start()
  await time.advance(12_000)
  assert.ok(sent.at(-1)! > 1_500, sent.join())
  assert.equal(worker.health().status, 'ok')
  await time.runUntil(worker.stop())
})
