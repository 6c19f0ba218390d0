/**
 * One store in a differential test, and what its caller knows of it: the ids and fences that it has seen, its workers
 * and what they hold. Two stages on which the same operations are played are in step as long as their answers are equal.
 */
import type { Beat, Storage } from '../../src/storage/storage.js'
import { type Held, heldIn, recoveredIn } from '../../src/testing/conformance/worker.js'
import { WORKERS } from './commands.js'

/** A store whose clock the test moves, and which it can look into. */
export interface Side {
  readonly name: string
  readonly store: Storage
  nowMs(): number
  advance(ms: number): Promise<void>
  /** Every job, lease, key, worker and queue, in the form that all stores share. Fences by their numbers. */
  places(numberOf: (fence: number) => number): Promise<unknown>
  close(): Promise<void>
}

/** A job that was handed out, under one of the fences it had. */
export interface Slot extends Held {
  /** A settlement was answered. */
  done: boolean
  /** When its handler started, as its worker tells; null: not yet. */
  startedAtMs: number | null
}

export interface Seat {
  id: string
  n: number
  request: number
  /** Of each request so far: a worker that sends one again can run what it could. */
  kinds: Map<number, readonly number[]>
  /** Fences of leases that were answered and are not forgotten. */
  holding: number[]
  lastBeat: Beat | null
}

export class Stage {
  readonly ids: string[] = []
  readonly slots: Slot[] = []
  readonly fences: number[] = []
  readonly seats: Seat[]
  private registered = 0

  constructor(readonly side: Side) {
    this.seats = Array.from({ length: WORKERS }, () => this.newSeat())
  }

  get store(): Storage {
    return this.side.store
  }

  newSeat(): Seat {
    this.registered += 1
    return { id: numberedId('b', this.registered), n: 0, request: 0, kinds: new Map(), holding: [], lastBeat: null }
  }

  newId(): string {
    const id = numberedId('a', this.ids.length + 1)
    this.ids.push(id)
    return id
  }

  /** The id of the `back`-th job before the last one; of none before the first. */
  idAt(back: number): string {
    return this.ids.at(-1 - (back % Math.max(1, this.ids.length))) ?? numberedId('c', 1)
  }

  /** Each once: what a call does with the same id twice is nothing that a client asks. */
  idsAt(backs: readonly number[]): string[] {
    return [...new Set(backs.map((back) => this.idAt(back)))]
  }

  /** Those with even numbers are dead letters, where there are any. */
  async deadOrAny(backs: readonly number[]): Promise<string[]> {
    const { jobs } = await this.store.inspect!.list({ state: 'dead', limit: 100 })
    const ids = backs.map((back) => (back % 2 === 0 ? jobs[(back >> 1) % Math.max(1, jobs.length)]?.id : undefined))
    return [...new Set(ids.map((id, at) => id ?? this.idAt(backs[at]!)))]
  }

  slotAt({ slot, of }: { slot: number; of: 'open' | 'any' }): Slot | undefined {
    const slots = of === 'any' ? this.slots : this.slots.filter(({ done }) => !done)
    return slots.at(-1 - (slot % Math.max(1, slots.length)))
  }

  /** What a claim gave is in the hands of the seat. A batch that was given again is known already. */
  takes(seat: Seat, answer: Parameters<typeof heldIn>[0]): void {
    this.hold(seat, heldIn(answer))
  }

  adopts(seat: Seat, answer: Parameters<typeof recoveredIn>[0]): void {
    this.hold(seat, recoveredIn(answer))
  }

  /** Fences by order of appearance, as each store draws its own. */
  numberOf(fence: number): number {
    const known = this.fences.indexOf(fence)
    return known >= 0 ? known : this.fences.push(fence) - 1
  }

  private hold(seat: Seat, held: readonly Held[]): void {
    for (const each of held) {
      const known = this.slots.some(({ fence, ordinal }) => fence === each.fence && ordinal === each.ordinal)
      if (!known) this.slots.push({ ...each, done: false, startedAtMs: null })
      if (!seat.holding.includes(each.fence)) seat.holding.push(each.fence)
    }
  }
}

/** Of the form of a UUIDv7. Later ones are larger, as those of clients are. */
function numberedId(sort: string, number: number): string {
  return `01941f29-7c00-7000-8${sort.repeat(3)}-${number.toString(16).padStart(12, '0')}`
}
