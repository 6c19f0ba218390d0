/**
 * The timers of virtual time: a binary heap, the next one on top, and of those due together the one that was set first. Most
 * are cancelled long before they are due, so a cancelled one is only marked, and thrown out when it comes up or when those are
 * the most. Made by virtual-time.ts.
 */
import type { Timer } from '../core/env.js'

/** A small heap is not worth the cleaning. */
const CLEANED_SIZE_MIN = 64

export class TimerHeap {
  private heap: VirtualTimer[] = []
  private orders = 0
  private cancelled = 0

  /** How many wait. */
  get size(): number {
    return this.heap.length - this.cancelled
  }

  add(at: number, run: () => void): Timer {
    const timer = new VirtualTimer(this, at, ++this.orders, run)
    this.heap.push(timer)
    rise(this.heap, this.heap.length - 1)
    return timer
  }

  first(): { readonly at: number } | undefined {
    while (this.heap[0]?.state === 'cancelled') {
      this.removeTop()
      this.cancelled -= 1
    }
    return this.heap[0]
  }

  /** The first one, which waits no longer. */
  take(): { readonly at: number; readonly run: () => void } | undefined {
    if (this.first() === undefined) return undefined
    const timer = this.removeTop()
    timer.state = 'due'
    return timer
  }

  noteCancelled(): void {
    this.cancelled += 1
    if (this.heap.length < CLEANED_SIZE_MIN || this.cancelled * 2 < this.heap.length) return
    this.heap = this.heap.filter(({ state }) => state === 'waiting').sort((a, b) => (isBefore(a, b) ? -1 : 1))
    this.cancelled = 0
  }

  private removeTop(): VirtualTimer {
    const top = this.heap[0]!
    const last = this.heap.pop()!
    if (last !== top) {
      this.heap[0] = last
      sink(this.heap)
    }
    return top
  }
}

class VirtualTimer implements Timer {
  state: 'waiting' | 'due' | 'cancelled' = 'waiting'

  constructor(
    private readonly heap: TimerHeap,
    readonly at: number,
    readonly order: number,
    readonly run: () => void,
  ) {}

  cancel(): void {
    if (this.state !== 'waiting') return
    this.state = 'cancelled'
    this.heap.noteCancelled()
  }
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

function rise(heap: VirtualTimer[], from: number): void {
  const timer = heap[from]!
  let at = from
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isBefore(timer, heap[parent]!)) break
    heap[at] = heap[parent]!
    at = parent
  }
  heap[at] = timer
}

/** From the top. */
function sink(heap: VirtualTimer[]): void {
  const timer = heap[0]!
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
    if (!isBefore(heap[child]!, timer)) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = timer
}
