/** Performs what a form has planned, at its time, whatever the processes do just then. Called by the run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Act, isFault, type Kill, type Moment } from '../src/testing/chaos/acts.js'
import type { Crew, Seat } from './crew.js'
import { type FaultRun, FLOOD_MS } from './fault-run.js'

/** A call that is to be cut has to come; else its worker is killed as it is. */
const CALL_MS_MAX = 6_000

export interface ActorParts {
  crew: Crew
  /** SIGKILLs at most. */
  killsMax: number
  /** Whether the backlog may be let loose without being used up. */
  mayFlood: () => boolean
  faults: FaultRun
}

export class Actor {
  private readonly underWay = new Set<Promise<void>>()
  private fault: unknown
  private floods = 0
  private draining = false
  /** Acts that are about to kill somebody. Two may mean the same process, and it dies once. */
  private promised = 0

  constructor(private readonly parts: ActorParts) {}

  /** No kill is left to be promised. */
  get spent(): boolean {
    return this.parts.crew.kills + this.promised >= this.parts.killsMax
  }

  /** What is left of the kills, from 1 to 0. */
  get left(): number {
    return 1 - this.parts.crew.kills / this.parts.killsMax
  }

  /** Begins it; several may be under way. */
  begin(act: Act): void {
    const performing = this.perform(act)
      .catch((error: unknown) => {
        this.fault ??= error
      })
      .finally(() => this.underWay.delete(performing))
    this.underWay.add(performing)
  }

  /** Resolves when what was begun is done. Throws what went wrong in it, which is a fault of this tool. */
  async ended(): Promise<void> {
    await Promise.all(this.underWay)
    if (this.fault !== undefined) throw this.fault
  }

  /** Resolves when nothing that was begun goes on any more, however it went. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay)
  }

  /** From now on the backlog is worked off as fast as it goes; kills go on. */
  drain(): void {
    this.draining = true
    this.parts.crew.setPace('fast')
  }

  private perform(act: Act): Promise<void> {
    return isFault(act) ? this.parts.faults.perform(act) : this.kill(act)
  }

  private async kill(act: Kill): Promise<void> {
    const flooding = act.flood && !this.draining && this.parts.mayFlood()
    if (flooding) await this.flood()
    if (act.act === 'kill producer') await this.killIn(this.parts.crew.producers[act.producer]!, 'any')
    else await Promise.all(act.seats.map((seat) => this.killAt(this.parts.crew.workers[seat]!, act.moment)))
    if (flooding) await this.ebb()
  }

  private async flood(): Promise<void> {
    this.floods += 1
    this.parts.crew.setPace('fast')
    await sleep(FLOOD_MS)
  }

  private async ebb(): Promise<void> {
    // For as long again after it.
    await sleep(FLOOD_MS)
    this.floods -= 1
    if (this.floods === 0 && !this.draining) this.parts.crew.setPace('slow')
  }

  private async killAt(seat: Seat, moment: Moment): Promise<void> {
    switch (moment.at) {
      case 'any':
        await this.killIn(seat, 'any')
        return
      case 'start': {
        const before = seat.sitting
        await this.killIn(seat, 'any')
        // It was started at once; unless the one before was spared.
        const follower = seat.sitting
        if (follower === before) return
        await sleep(moment.afterMs)
        if (seat.sitting === follower) await this.killIn(seat, 'start')
        return
      }
      case 'stop': {
        const { sitting } = seat
        if (sitting === undefined) return
        sitting.child.signal('SIGTERM')
        await sleep(moment.afterMs)
        if (seat.sitting === sitting) await this.killIn(seat, 'stop')
        return
      }
      case 'call':
        await this.killInCall(seat, moment)
    }
  }

  private async killIn(seat: Seat, moment: string): Promise<void> {
    const { sitting } = seat
    if (sitting === undefined || this.spent) return
    this.promised += 1
    await this.parts.crew.kill(sitting, moment)
    this.promised -= 1
  }

  private async killInCall(seat: Seat, moment: Moment & { at: 'call' }): Promise<void> {
    const { sitting } = seat
    if (sitting === undefined || this.spent) return
    this.promised += 1
    sitting.moment = `${moment.operation} ${moment.cut}`
    sitting.child.send({ die: moment })
    const patience = new AbortController()
    const late = sleep(CALL_MS_MAX, undefined, { signal: patience.signal }).catch(() => {})
    await Promise.race([sitting.child.ended, late])
    patience.abort()
    await this.parts.crew.kill(sitting, 'any')
    this.promised -= 1
  }
}
