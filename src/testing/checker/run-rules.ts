/** Rules about runs: when one may begin, beside which other ones, and how often. In the table of rules.ts. */
import { beatsOf, lastUntil } from './beats.js'
import { type Rule, type Ruling, ruled } from './rule.js'
import { mayHaveBeen, type Run, type Scene, type Story, type Trace, toldOf } from './story.js'

export const RUN_RULES: readonly Rule[] = [
  {
    name: 'an effect is repeated only for a reason',
    promise:
      'A handler that succeeded runs again only if its worker was lost, or lost the lease, before the store knew.',
    breach: 'doubledEffects',
    reads: 'the effects of handlers',
    judge: doubledEffect,
  },
  {
    name: 'at most once',
    promise: 'An at-most-once job never starts twice.',
    breach: 'doubledEffects',
    reads: 'the plan, and the starts of at-most-once jobs',
    judge: startedTwice,
  },
  {
    name: 'nothing runs early',
    promise: 'A delayed job does not start before it is due.',
    breach: 'otherFaults',
    reads: 'the plan, and when producers sent jobs that ran',
    judge: early,
  },
  {
    name: 'a wait is kept',
    promise:
      'After a failure or a snooze a job does not start again before its wait is over, unless an operator says so.',
    breach: 'otherFaults',
    reads: 'the waits that workers were told, and the runs that followed',
    judge: shortWait,
  },
  {
    name: 'a later start has a larger fence',
    promise: 'Each claim of a job has a fence larger than every earlier one.',
    breach: 'otherFaults',
    reads: 'jobs that started more than once',
    judge: fenceFell,
  },
  {
    name: 'one run at a time',
    promise: 'A job does not start while another run of it goes on in a worker that still has it.',
    breach: 'otherFaults',
    reads: 'jobs that started more than once, by one clock',
    judge: sideBySide,
  },
  {
    name: 'no two valid leases',
    promise: 'While a worker has had a beat confirmed within its lease, nobody else gets the job that it runs.',
    breach: 'otherFaults',
    reads: 'jobs that started more than once, and the beats of the workers that ran them, by one clock',
    judge: twoLeases,
  },
  {
    name: 'what expired never ran',
    promise: 'A job that is dead (expired) was not started.',
    breach: 'otherFaults',
    reads: 'jobs that expired',
    judge: ranAndExpired,
  },
  {
    name: 'nothing starts after its expiry',
    promise: 'A job with an expiry does not start for the first time when that is over.',
    breach: 'otherFaults',
    reads: 'the plan, and jobs with an expiry that ran, by one clock',
    judge: startedTooLate,
  },
]

/** Instants of the plan come from a producer's wall clock and the store's own, which agree to within this. */
export const CLOCK_STEP_MS = 5

/** A run with an effect, then another one: right only if nobody could know that the first had succeeded. */
function doubledEffect({ traces }: Story, scene: Scene): Ruling {
  let judged = false
  for (const trace of traces) {
    const done = trace.runs.filter(({ effectAt }) => effectAt !== undefined)
    judged ||= done.length > 0
    const again = done.slice(0, -1).find((run) => !isUndecided(run, scene))
    if (again !== undefined)
      return {
        broken: `job ${trace.id} had its effect ${done.length} times, and the one in ${again.process} was not lost`,
      }
  }
  return judged ? 'kept' : 'not judged'
}

const GAVE_UP: ReadonlySet<string> = new Set(['lost', 'given back', 'timed out', 'failed', 'dead'])

/**
 * Its worker died, or came to its end while the store was away, before it was told how the job was settled, had lost the lease or given the job back, or was told
 * of a failure: the attempt had timed out, or its result was refused.
 */
function isUndecided(run: Run, { processes }: Scene): boolean {
  const told = toldOf(run)
  if (told !== undefined) return GAVE_UP.has(told.as)
  const life = processes.get(run.process)
  return life?.killedAt !== undefined || life?.goneAt !== undefined
}

function startedTwice({ expected, traces }: Story): Ruling {
  if (expected?.delivery !== 'at-most-once') return 'not judged'
  const runs = traces.flatMap((trace) => trace.runs)
  if (runs.length === 0) return 'not judged'
  const asks = traces.flatMap((trace) => trace.asks)
  const lives = 1 + asks.filter((ask) => mayHaveBeen(ask, 'redrive', 'ok')).length
  return ruled(
    runs.length > lives
      ? `it started ${runs.length} times: in ${runs.map(({ process }) => process).join(', ')}`
      : undefined,
  )
}

// When.

function early({ expected, sentAt, traces }: Story, { clocks }: Scene): Ruling {
  if (expected?.delayMs === undefined || sentAt === undefined || clocks === 'apart') return 'not judged'
  const dueAt = sentAt + expected.delayMs
  let judged = false
  for (const { runs, asks } of traces) {
    if (asks.some((ask) => mayHaveBeen(ask, 'retry', 'ok'))) continue
    judged ||= runs.length > 0
    const run = runs.find(({ startedAt }) => startedAt + CLOCK_STEP_MS < dueAt)
    if (run !== undefined)
      return { broken: `it started in ${run.process} ${Math.round(dueAt - run.startedAt)} ms before it was due` }
  }
  return judged ? 'kept' : 'not judged'
}

/** The wait begins when the failure is settled, which is after the code failed; of one that timed out, after its start. */
function shortWait({ traces }: Story, { clocks, covers }: Scene): Ruling {
  // Nobody knows which ones an operator has made ready.
  if (covers === 'workers') return 'not judged'
  let judged = false
  for (const { id, holds, asks } of traces) {
    if (holds.length < 2 || asks.some(({ operation }) => operation === 'retry' || operation === 'redrive')) continue
    for (let i = 0; i + 1 < holds.length; i++) {
      const [hold, next] = [holds[i]!, holds[i + 1]!]
      const told = toldOf(hold)
      if (told?.againInMs === undefined || hold.startedAt === undefined || next.startedAt === undefined) continue
      if (clocks === 'apart' && hold.process !== next.process) continue
      judged = true
      const endedAt = told.as === 'timed out' ? hold.startedAt : (hold.finishedAt ?? hold.startedAt)
      const missingMs = endedAt + told.againInMs - next.startedAt
      if (missingMs > CLOCK_STEP_MS)
        return {
          broken: `job ${id} started again in ${next.process} ${Math.round(missingMs)} ms before its wait was over`,
        }
    }
  }
  return judged ? 'kept' : 'not judged'
}

function ranAndExpired({ traces }: Story): Ruling {
  let judged = false
  for (const { id, records, expiredAt, asks, runs } of traces) {
    const expired = expiredAt !== undefined || records.some(({ reason }) => reason === 'expired')
    if (!expired || asks.some(({ operation }) => operation === 'redrive')) continue
    judged = true
    // Of a run that was lost before it was reported the store knows nothing.
    const run = runs.find((one) => toldOf(one) !== undefined && toldOf(one)!.as !== 'lost' && !isGivenBack(one))
    if (run !== undefined) return { broken: `job ${id} is dead (expired), and ran in ${run.process}` }
  }
  return judged ? 'kept' : 'not judged'
}

function isGivenBack(run: Run): boolean {
  return toldOf(run)?.as === 'given back'
}

/** Its expiry is reckoned from its enqueue, which was over when the producer was told. */
function startedTooLate({ expected, told, traces }: Story, { clocks }: Scene): Ruling {
  if (expected?.expiresInMs === undefined || clocks === 'apart') return 'not judged'
  const created = told.find(({ outcome, transaction }) => outcome === 'created' && transaction === undefined)
  const trace = created && traces.find(({ id }) => id === created.id)
  const [first] = trace?.runs ?? []
  if (created === undefined || trace === undefined || first === undefined) return 'not judged'
  if (trace.asks.some(({ operation }) => operation === 'redrive')) return 'not judged'
  const lateMs = first.startedAt - created.at - expected.expiresInMs
  return ruled(
    lateMs > CLOCK_STEP_MS ? `job ${trace.id} started ${Math.round(lateMs)} ms after its expiry was over` : undefined,
  )
}

// Beside which others.

function fenceFell({ traces }: Story, { clocks }: Scene): Ruling {
  let judged = false
  for (const { id, runs } of traces)
    for (let i = 1; i < runs.length; i++) {
      const [before, run] = [runs[i - 1]!, runs[i]!]
      if (clocks === 'apart' && before.process !== run.process) continue
      judged = true
      if (run.fence <= before.fence)
        return { broken: `job ${id} started under fence ${run.fence} after it had under ${before.fence}` }
    }
  return judged ? 'kept' : 'not judged'
}

/** Pairs of runs of which the later one begins while the code of the earlier one goes on. */
function overlaps(trace: Trace, scene: Scene): [Run, Run][] {
  const found: [Run, Run][] = []
  for (let i = 1; i < trace.runs.length; i++)
    for (let j = 0; j < i; j++)
      if (goesOn(trace.runs[j]!, trace.runs[i]!.startedAt, scene)) found.push([trace.runs[j]!, trace.runs[i]!])
  return found
}

function goesOn(run: Run, at: number, { processes }: Scene): boolean {
  const endedAt = run.effectAt ?? run.finishedAt
  if (endedAt !== undefined && endedAt <= at) return false
  const life = processes.get(run.process)
  const goneAt = life?.killedAt ?? life?.goneAt
  return goneAt === undefined || goneAt > at
}

/** Its worker gave the job away itself, while the code may have gone on. */
const LET_GO: ReadonlySet<string> = new Set(['given back', 'timed out', 'cancelled', 'dead'])

function hasLetGo(run: Run): boolean {
  return run.told.some(({ as }) => LET_GO.has(as))
}

/** A stalled worker learns of its loss when it wakes: then the overlap is what a lease allows. */
function sideBySide({ traces }: Story, scene: Scene): Ruling {
  if (scene.clocks === 'apart' || traces.every(({ runs }) => runs.length < 2)) return 'not judged'
  for (const trace of traces)
    for (const [earlier, later] of overlaps(trace, scene)) {
      const excused =
        hasLetGo(earlier) ||
        wasLost(earlier, later, scene) ||
        leaseOf(earlier, later, scene) !== undefined ||
        neverWoke(earlier, later.startedAt, scene)
      if (!excused) return { broken: `job ${trace.id} started in ${later.process} while it ran in ${earlier.process}` }
    }
  return 'kept'
}

/** It stalled, lost its lease, and died before it could hear of it. */
function neverWoke(run: Run, at: number, scene: Scene): boolean {
  const life = scene.processes.get(run.process)
  const died = life?.killedAt !== undefined || life?.goneAt !== undefined
  const beats = beatsOf(run, scene)
  return died && toldOf(run) === undefined && beats.length > 0 && beats.at(-1)! <= at
}

/** Its worker was told so, or had been taken over by then: one that died tells nothing any more. */
function wasLost(earlier: Run, later: Run, { ends, identities }: Scene): boolean {
  const told = toldOf(earlier)
  if (told !== undefined) return told.as === 'lost'
  const workers = earlier.claimed ? [earlier.claimed.worker] : (identities.get(earlier.process) ?? [])
  return workers.some((worker) => (ends.get(worker) ?? Number.POSITIVE_INFINITY) <= later.startedAt)
}

function twoLeases({ traces }: Story, scene: Scene): Ruling {
  if (scene.clocks === 'apart') return 'not judged'
  let judged = false
  for (const trace of traces) {
    if (trace.runs.length < 2) continue
    judged ||= trace.runs.slice(0, -1).some((run) => beatsOf(run, scene).length > 0)
    for (const [earlier, later] of overlaps(trace, scene)) {
      const sinceMs = leaseOf(earlier, later, scene)
      if (sinceMs !== undefined && !hasLetGo(earlier))
        return {
          broken: `job ${trace.id} started in ${later.process} while ${earlier.process} ran it, whose beat was confirmed ${Math.round(sinceMs)} ms before`,
        }
    }
  }
  return judged ? 'kept' : 'not judged'
}

/** How long before the later start the worker of the earlier run had a beat confirmed, if that is less than a lease. */
function leaseOf(earlier: Run, later: Run, scene: Scene): number | undefined {
  const at = later.startedAt
  const lost = toldOf(earlier)
  // It knew better itself: it had given the lease up by its own reckoning, or was told so before.
  if (lost?.as === 'lost' && lost.at <= at) return undefined
  const last = lastUntil(beatsOf(earlier, scene), at)
  return last !== undefined && at - last < scene.leaseMs ? at - last : undefined
}
