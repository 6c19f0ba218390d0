/** What the processes say of their throughput, as the driver hears it: how long to wait for it. The checker measures by the logs. */
import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_MS = 250
const WINDOW_MS = 2_500
/** Of the rate before: then it is back, also by the stricter look of the checker. */
const BACK_PART = 0.92

interface Sample {
  at: number
  done: number
}

export class RateMeter {
  private samples: Sample[] = []

  /** `done`: jobs done since the run began. */
  constructor(private readonly done: () => number) {}

  /** Jobs a second at the end of this time. */
  async over(ms: number, signal: AbortSignal): Promise<number> {
    const until = performance.now() + ms
    this.samples = []
    while (performance.now() < until) await this.look(signal)
    return this.rate
  }

  /** Resolves when it is as high as before, or after this time. */
  async untilBack(before: number, msMax: number, signal: AbortSignal): Promise<void> {
    const from = performance.now()
    this.samples = []
    for (;;) {
      await this.look(signal)
      const passed = performance.now() - from
      if (passed > msMax || (passed > WINDOW_MS && this.rate >= before * BACK_PART)) return
    }
  }

  private async look(signal: AbortSignal): Promise<void> {
    await sleep(LOOK_MS, undefined, { signal })
    const at = performance.now()
    this.samples.push({ at, done: this.done() })
    this.samples = this.samples.filter((sample) => sample.at >= at - WINDOW_MS)
  }

  private get rate(): number {
    const [first] = this.samples
    const last = this.samples.at(-1)
    if (first === undefined || last === undefined || last.at === first.at) return 0
    return ((last.done - first.done) / (last.at - first.at)) * 1_000
  }
}
