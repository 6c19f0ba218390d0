import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import { VirtualTime } from '../../src/testing/index.js'

/** What a little program does in virtual time, as a trace. */
async function traceOf(seed: number): Promise<string[]> {
  const time = new VirtualTime({ seed })
  const trace: string[] = []
  const wander = async (name: string): Promise<void> => {
    for (let steps = 0; steps < 5; steps++) {
      await time.sleep(time.random() * 100)
      trace.push(`${name} ${time.monotonic()} ${time.id()}`)
    }
  }
  await time.runUntil(Promise.all([wander('a'), wander('b')]))
  return trace
}

test('the same seed gives the same trace, another one another', async () => {
  assert.deepEqual(await traceOf(7), await traceOf(7))
  assert.notDeepEqual(await traceOf(7), await traceOf(8))
})

test('timers run in order of their time, then of their making, and never early', async () => {
  const time = new VirtualTime()
  const ran: string[] = []
  time.timer(20, () => ran.push('c'))
  time.timer(10, () => ran.push('a'))
  time.timer(10, () => ran.push('b'))
  await time.advance(9)
  assert.deepEqual(ran, [])
  await time.advance(1)
  assert.deepEqual(ran, ['a', 'b'])
  await time.advance(1_000)
  assert.deepEqual(ran, ['a', 'b', 'c'])
  assert.equal(time.monotonic(), 1_010)
})

test('what a timer sets off comes to rest before the next one, with the clock at its time', async () => {
  const time = new VirtualTime()
  const ran: [string, number][] = []
  time.timer(10, () => {
    void Promise.resolve()
      .then(() => Promise.resolve())
      .then(() => time.soon(() => ran.push(['soon', time.monotonic()])))
    time.timer(5, () => ran.push(['inner', time.monotonic()]))
  })
  time.timer(11, () => ran.push(['next', time.monotonic()]))
  await time.advance(100)
  assert.deepEqual(ran, [
    ['soon', 10],
    ['next', 11],
    ['inner', 15],
  ])
})

test('the wall clock starts where it is told and goes with the other', async () => {
  const time = new VirtualTime({ startMs: 5_000 })
  await time.advance(250)
  assert.deepEqual([time.now(), time.monotonic()], [5_250, 250])
})

test('a cancelled timer does not run, and a sleep ends with its signal', async () => {
  const time = new VirtualTime()
  time.timer(5, () => assert.fail('it was cancelled')).cancel()
  const stop = new AbortController()
  const sleep = time.sleep(1_000, stop.signal)
  time.timer(7, () => stop.abort())
  await time.runUntil(sleep)
  assert.deepEqual([time.monotonic(), time.pending], [7, 0])
})

test('a wait of years passes at once', async () => {
  const time = new VirtualTime()
  await time.advance(10 * 366 * 86_400_000)
  assert.equal(time.monotonic(), 10 * 366 * 86_400_000)
})

test('runUntil gives the value, hands on the failure, and sees a deadlock', async () => {
  const time = new VirtualTime()
  assert.equal(await time.runUntil(time.sleep(3).then(() => 'done')), 'done')
  const failure = new Error('mine')
  await assert.rejects(time.runUntil(time.sleep(3).then(() => Promise.reject(failure))), failure)
  await assert.rejects(time.runUntil(new Promise(() => {})), /nothing is left/)
  const tick = (): void => void time.timer(10, tick)
  tick()
  await assert.rejects(time.runUntil(new Promise(() => {}), 1_000), /not settled after 1000 ms/)
})

test('two cannot move time at once', async () => {
  const time = new VirtualTime()
  const moving = time.advance(10)
  await assert.rejects(time.advance(10), /await that first/)
  await moving
})

test('ids have the form of a UUIDv7 and rise, in one millisecond and over many', async () => {
  const time = new VirtualTime()
  const ids: string[] = []
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 500; i++) ids.push(time.id())
    await time.advance(1)
  }
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(ids.toSorted(), ids)
  assert.equal(new Set(ids).size, ids.length)
})

test('time stands still while real work is under way', async () => {
  const time = new VirtualTime()
  const seen: string[] = []
  time.timer(10, () => {
    time.hold(
      new Promise<void>((resolve) => {
        setImmediate(() => setImmediate(resolve))
      }).then(() => void seen.push(`done at ${time.monotonic()}`)),
    )
  })
  time.timer(11, () => seen.push(`next at ${time.monotonic()}`))
  await time.advance(20)
  assert.deepEqual(seen, ['done at 10', 'next at 11'])
})
