/** Performs a fault: sees the throughput before it, lets it begin and end, and waits until the throughput is back. Called by the actor. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../src/testing/chaos/acts.js'
import { BACK_MS_MAX } from '../src/testing/checker/faults.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import type { Crew } from './crew.js'
import { RateMeter } from './rate-meter.js'
import type { Stage } from './stage.js'

/** Before a fault work goes at the pace at which it is measured, for so long. */
export const LEAD_MS = 4_000
/** Longer than it may take, by more than what the checker looks at for one measure. */
const WAIT_MS_MAX = BACK_MS_MAX + 3_000
/** Before an act the backlog may be let loose for so long. */
export const FLOOD_MS = 350

export interface FaultParts {
  crew: Crew
  stage: Stage
  log: LogFile
  /** Whether there is backlog enough to measure on. */
  mayWork: () => boolean
  asked: AbortSignal
  note: (text: string) => void
}

export class FaultRun {
  private readonly meter: RateMeter
  private count = 0

  constructor(private readonly parts: FaultParts) {
    this.meter = new RateMeter(() => parts.crew.backlogDone)
  }

  async perform(fault: Fault): Promise<void> {
    const { crew, asked } = this.parts
    const measured = this.parts.mayWork()
    if (measured) crew.setPace('brisk')
    const before = await this.meter.over(LEAD_MS, asked)
    if (measured && fault.flood) {
      crew.setPace('fast')
      await sleep(FLOOD_MS, undefined, { signal: asked })
    }
    await this.beginAndEnd(fault)
    if (measured) {
      crew.setPace('brisk')
      await this.meter.untilBack(before, WAIT_MS_MAX, asked)
    }
    crew.setPace('slow')
  }

  private async beginAndEnd(fault: Fault): Promise<void> {
    const { crew, stage, log, asked, note } = this.parts
    const begun = await stage.begin(fault, crew)
    if (begun === undefined) return
    this.count += 1
    const { touches, outage } = begun
    log.write({ what: 'fault', fault: this.count, is: 'begun', kind: kindOf(fault), touches, outage })
    note(`${kindOf(fault)} of ${touches.length} processes for ${(fault.ms / 1_000).toFixed(1)} s`)
    crew.setPace('slow')
    // Whatever ends this run: what was begun is ended.
    await sleep(fault.ms, undefined, { signal: asked }).catch(() => {})
    log.write({ what: 'fault', fault: this.count, is: 'lifting' })
    await begun.end()
    log.write({ what: 'fault', fault: this.count, is: 'over' })
  }
}

function kindOf(fault: Fault): string {
  return 'way' in fault ? `${fault.act} ${fault.way}` : fault.act
}
