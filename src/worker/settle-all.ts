/**
 * Settles a batch: repeats it while the store is away, and halves it where the store refuses it, so that one settlement
 * that cannot be stored never sinks its neighbours. Called by the settler and by upkeep.
 */
import type { SettleAnswer, Settlement, Storage } from '../storage/storage.js'
import { isRefusal, type StoreCalls } from './store-calls.js'

export interface Settling {
  readonly settlement: Settlement
  /** What to settle instead, as the store refuses this settlement as it is. */
  instead(): Settlement
}

/** `refused`: the store takes others and neither this settlement nor what was to stand for it; nobody asks again. */
export type Answer = SettleAnswer | 'refused'

export interface Settled {
  answer: Answer
  /** What was settled instead, where the store refused the settlement. */
  instead?: Settlement
}

export interface Round {
  /** One for each, in order; null for what has to be tried again, as the store may refuse whatever it is given. */
  settled: (Settled | null)[]
  /** Why, if there is a null among them. */
  refusal: unknown
}

/** So many others are tried before a store that refuses one settlement wholly is taken for one that refuses all. */
const PROOFS_MAX = 3

/** Rejects when the session ends. */
export async function settleAll(
  storage: Storage,
  calls: StoreCalls,
  operation: string,
  batch: readonly Settling[],
): Promise<Round> {
  const settling = new SettlingRound(
    (settlements) => calls.repeated(operation, () => storage.settle(settlements)),
    batch,
  )
  await settling.range(0, batch.length)
  return settling
}

class SettlingRound implements Round {
  readonly settled: (Settled | null)[]
  refusal: unknown
  /** Refused wholly, while no other was stored after it: either it cannot be stored, or nothing can (a demoted server, a full disk). */
  private readonly doubtful = new Set<number>()
  private givenUp = false

  constructor(
    private readonly settle: (settlements: Settlement[]) => Promise<SettleAnswer[]>,
    private readonly batch: readonly Settling[],
  ) {
    this.settled = batch.map(() => null)
  }

  async range(from: number, to: number): Promise<void> {
    const open = this.open(from, to)
    if (open.length === 0 || this.givenUp || (await this.stored(open))) return
    if (to - from === 1) {
      await this.replace(from)
      return
    }
    const middle = (from + to) >> 1
    await this.range(from, middle)
    await this.range(middle, to)
  }

  private open(from: number, to: number): number[] {
    const open: number[] = []
    for (let i = from; i < to; i++) if (this.settled[i] === null && !this.doubtful.has(i)) open.push(i)
    return open
  }

  /** Whether the store took them, as they are or, of a single one, what stands for it. */
  private async stored(indexes: number[], instead?: Settlement): Promise<boolean> {
    try {
      const answers = await this.settle(instead ? [instead] : indexes.map((i) => this.batch[i]!.settlement))
      for (const [n, i] of indexes.entries())
        this.settled[i] = instead ? { answer: answers[n]!, instead } : { answer: answers[n]! }
      // `already` and `lost` write nothing, so a full disk can answer them too.
      if (answers.some((answer) => answer === 'ok' || answer === 'cancelled')) this.proveWell()
      return true
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.refusal = error
      return false
    }
  }

  private async replace(i: number): Promise<void> {
    if (await this.stored([i], this.batch[i]!.instead())) return
    this.doubtful.add(i)
    const others = this.open(0, this.batch.length).reverse().slice(0, PROOFS_MAX)
    for (const other of others) {
      await this.stored([other])
      if (this.doubtful.size === 0) return
    }
    // Those that were not tried may be well: they are not worth a round trip each while the store may be ill.
    this.givenUp = true
  }

  private proveWell(): void {
    for (const i of this.doubtful) this.settled[i] = { answer: 'refused' }
    this.doubtful.clear()
  }
}
