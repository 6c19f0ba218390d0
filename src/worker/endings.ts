/**
 * The end of an attempt: an outcome becomes a settlement, and, once the store has confirmed it, an event. Called by
 * the executor for what ran and by the fetcher for what never did.
 */
import type { Env } from '../core/env.js'
import { emptyHistory, isSuspect } from '../core/job.js'
import { type Attempt, type Fate, fateOfCrash, fateOfOutcome, type Outcome } from '../core/settlement.js'
import type { EventBus } from '../observe/events.js'
import type { Settlement } from '../storage/storage.js'
import type { HeldJob, Holdings } from './holdings.js'
import { refusedBy } from './outcome.js'
import type { Answer } from './settle-all.js'
import type { Outgoing, Settler } from './settler.js'
import type { Stats } from './stats.js'
import { tellEnd, tellLost } from './telling.js'

export interface EndingParts {
  readonly env: Env
  readonly events: EventBus
  readonly holdings: Holdings
  readonly settler: Settler
  readonly stats: Stats
  /** Called when the store has confirmed or refused a job's end. */
  readonly onClosed: () => void
}

export class Endings {
  constructor(private readonly parts: EndingParts) {}

  /** Decides where the job goes and hands it to the settler. Nothing that its code does later counts. */
  end(held: HeldJob, outcome: Outcome): void {
    held.state = 'ended'
    this.parts.settler.add(new Ending(this.parts, held, outcome, fateOf(this.parts.env, held, outcome)))
  }

  /** Aborted while its code may still run: back it goes, without the cost of an attempt. */
  abandon(held: HeldJob, note: string, ranMs: number): void {
    const outcome: Outcome = { type: 'given back', note, ranMs }
    if (held.job.spec.delivery === 'at-least-once') {
      this.end(held, outcome)
      return
    }
    // It may have done its work already: the same fate as if this worker had died of it.
    held.state = 'ended'
    const crash = { worker: held.lease.worker, started: true, alone: false, cancelled: false }
    const fate = fateOfCrash(attemptOf(this.parts.env, held), crash)
    this.parts.settler.add(new Ending(this.parts, held, outcome, fate))
  }

  /** Back into the store, and not to come before `delayMs`: nothing happened, and now it could not run here. */
  postpone(held: HeldJob, note: string, delayMs: number): void {
    held.state = 'ended'
    const history = held.job.history ?? emptyHistory()
    const fate: Fate = { to: 'delayed', delayMs, suspect: isSuspect(history), history }
    this.parts.settler.add(new Ending(this.parts, held, { type: 'given back', note }, fate))
  }

  /** Its lease is gone: whatever comes of it is dropped. */
  lose(held: HeldJob): void {
    if (held.state === 'ended') return
    held.state = 'ended'
    tellLost(this.parts, held, 'run')
  }
}

class Ending implements Outgoing {
  readonly urgent = false
  readonly settlement: Settlement

  constructor(
    private readonly parts: EndingParts,
    private readonly held: HeldJob,
    private readonly outcome: Outcome,
    fate: Fate,
  ) {
    this.settlement = settlementOf(held, fate, outcome)
  }

  answered(answer: Answer, instead?: Settlement): void {
    const { parts, held } = this
    parts.holdings.close(held.lease)
    // Of a refused one the store may think what it likes when its lease ends: the beats name that no longer.
    if (answer === 'lost' || answer === 'refused') tellLost(parts, held, 'settle')
    // `already` is the repeat of a call whose answer was lost: until now it was told to nobody.
    else if (instead) tellEnd(parts, held, { settlement: instead, outcome: this.refused(), answer })
    else tellEnd(parts, held, { settlement: this.settlement, outcome: this.outcome, answer })
    parts.onClosed()
  }

  /** Without result and progress: one of them may be what the store refuses. */
  instead(): Settlement {
    const outcome = this.refused()
    const { held, parts } = this
    return settlementOf(
      held,
      fateOfOutcome({ ...attemptOf(parts.env, held), history: held.job.history }, outcome),
      outcome,
    )
  }

  private refused(): Outcome {
    return refusedBy('ranMs' in this.outcome ? (this.outcome.ranMs ?? 0) : 0)
  }
}

function fateOf(env: Env, held: HeldJob, outcome: Outcome): Fate {
  return fateOfOutcome(attemptOf(env, held), outcome)
}

function attemptOf(env: Env, { job, lease, progress }: HeldJob): Attempt {
  return {
    spec: job.spec,
    history: progress === undefined ? job.history : { ...(job.history ?? emptyHistory()), progress },
    worker: lease.worker,
    nowMs: lease.storeNowMs + env.monotonic() - lease.claimedAt,
    random: env.random(),
  }
}

function settlementOf(held: HeldJob, fate: Fate, outcome: Outcome): Settlement {
  const { lease, ordinal, startedAt, job } = held
  const startedAfterMs = Math.max(0, startedAt - lease.claimedAt)
  const ranMs = 'ranMs' in outcome ? (outcome.ranMs ?? 0) : 0
  if (fate.to !== 'completed')
    return { fence: lease.fence, ordinal, ...(startedAt < 0 ? {} : { startedAfterMs, ranMs }), ...fate }
  // Written out for the common end: as spreads it took 7 µs, more than all the rest of the worker.
  const { history, result } = fate
  const keep = job.spec.keep === 'all'
  if (result === undefined)
    return { fence: lease.fence, ordinal, to: 'completed', history, keep, startedAfterMs, ranMs }
  return { fence: lease.fence, ordinal, to: 'completed', history, keep, startedAfterMs, ranMs, result }
}
