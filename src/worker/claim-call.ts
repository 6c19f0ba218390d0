/** One claim, asked until it is answered: always the same request, so that no answer is ever lost. Made by the fetcher. */
import type { Claim, ClaimRequest, Storage } from '../storage/storage.js'
import type { Outgoing, Settler } from './settler.js'
import { isFinal, isRefusal, type StoreCalls } from './store-calls.js'

export class ClaimCall {
  /** By the local clock; the store answered after it, so no instant that is reckoned from it is too early. */
  sentAt = 0

  /** `riders` are settlements it takes along: done first, in the same round trip. */
  constructor(
    readonly request: ClaimRequest,
    private riders: Outgoing[],
    private readonly now: () => number,
  ) {}

  /**
   * Repeats the request while its outcome is unknown: the store gives the same batch. Rejects when the store can
   * never be asked again, when `stopping` fires before an answer, or when the worker got another identity.
   */
  async send(
    storage: Storage,
    calls: StoreCalls,
    settler: Settler,
    identity: () => string,
    stopping: AbortSignal,
  ): Promise<Claim> {
    for (;;) {
      try {
        this.sentAt = this.now()
        const claim = await calls.once(() => storage.claim(this.withRiders()))
        calls.succeeded('claim')
        return claim
      } catch (error) {
        if (isFinal(error) && !isRefusal(error)) throw error
        // One of the settlements may be what it refuses: the settler finds out which.
        if (isRefusal(error)) this.unload(settler)
        await calls.pause('claim', error, stopping)
        if (this.request.worker !== identity()) throw error
      }
    }
  }

  /** Hands out the answers to what it took along. */
  deliver(settler: Settler, claim: Claim): void {
    const riders = this.riders
    this.riders = []
    if (claim.settled.length === riders.length) settler.answer(riders, claim.settled)
    else settler.putBack(riders)
  }

  /** What it took along goes by a call of its own. Settled twice does no harm. */
  unload(settler: Settler): void {
    const riders = this.riders
    this.riders = []
    settler.putBack(riders)
  }

  private withRiders(): ClaimRequest {
    if (this.riders.length === 0) return this.request
    return { ...this.request, finished: this.riders.map(({ settlement }) => settlement) }
  }
}
