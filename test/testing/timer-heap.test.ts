/** The timers of virtual time come in the order in which they are due, whatever is cancelled in between. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Timer } from '../../src/core/env.js'
import { TimerHeap } from '../../src/testing/timer-heap.js'
import { generator } from '../../src/testing/virtual-time.js'

function taken(heap: TimerHeap): number {
  const timer = heap.take()
  timer?.run()
  return timer?.at ?? Number.NaN
}

test('of timers that are due together the one that was set first comes first', () => {
  const heap = new TimerHeap()
  const ran: string[] = []
  for (const [at, name] of [
    [2, 'c'],
    [1, 'a'],
    [2, 'd'],
    [1, 'b'],
  ] as const)
    heap.add(at, () => ran.push(name))
  while (heap.size > 0) taken(heap)
  assert.deepEqual(ran, ['a', 'b', 'c', 'd'])
})

test('a cancelled timer never comes, and cancelling it again or after it came changes nothing', () => {
  const heap = new TimerHeap()
  const first = heap.add(1, () => assert.fail('it was cancelled'))
  const second = heap.add(2, () => {})
  first.cancel()
  first.cancel()
  assert.equal(heap.size, 1)
  assert.equal(heap.first()?.at, 2)
  assert.equal(taken(heap), 2)
  second.cancel()
  assert.equal(heap.size, 0)
  assert.equal(heap.take(), undefined)
})

test('among thousands of which most are cancelled the rest comes in order', () => {
  const [heap, draw] = [new TimerHeap(), generator(1)]
  const open = new Map<Timer, { at: number; order: number }>()
  let now = 0
  for (let order = 0; order < 20_000; order++) {
    const at = now + Math.floor(draw() * 50)
    const timer = heap.add(at, () => {
      const due = [...open].sort(([, a], [, b]) => a.at - b.at || a.order - b.order)[0]!
      assert.equal(due[0], timer)
      open.delete(timer)
    })
    open.set(timer, { at, order })
    const [oldest] = open.keys()
    if (draw() < 0.7 && oldest !== undefined) {
      oldest.cancel()
      open.delete(oldest)
    }
    if (open.size > 40) now = taken(heap)
    assert.equal(heap.size, open.size)
  }
})
