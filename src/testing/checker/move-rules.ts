/** Rules about the walk of a job through its states: which move may follow which. In the table of rules.ts. */
import { QUARANTINE_CRASHES_ALONE } from '../../core/job.js'
import { AGE_LIMIT_MS } from './ending-rules.js'
import type { Rule, Ruling } from './rule.js'
import { type Hold, mayHaveBeen, mayTakeUnseen, type Run, type Scene, type Story, type Trace, toldOf } from './story.js'

export const MOVE_RULES: readonly Rule[] = [
  {
    name: 'what has ended stays ended',
    promise: 'After a job was settled as completed, cancelled or dead nobody gets it again, unless it is redriven.',
    breach: 'settledTwice',
    reads: 'what workers were told of the end, and later claims and starts',
    judge: heldAfterEnd,
  },
  {
    name: 'nothing starts unclaimed',
    promise: 'A handler starts only for a job that its worker has claimed, under that fence.',
    breach: 'otherFaults',
    reads: 'the starts of processes that write their claims down',
    judge: startedUnclaimed,
  },
  {
    name: 'only what was held is settled',
    promise: 'A worker settles only jobs that it has claimed or taken over, and an outcome only of what it started.',
    breach: 'otherFaults',
    reads: 'what workers of known processes were told',
    judge: settledUnheld,
  },
  {
    name: 'an attempt is used by a failure, or a crash after its start',
    promise:
      'Failures and crashes of started handlers use an attempt up; snoozes, give-backs and other crashes do not.',
    breach: 'otherFaults',
    reads: 'the numbers of attempts of jobs that were held more than once',
    judge: wrongCount,
  },
  {
    name: 'no attempt beyond the last',
    promise: 'A handler starts at most as often as its attempts say, not counting what used none up.',
    breach: 'otherFaults',
    reads: 'the plan, and the starts of handlers',
    judge: beyondTheLast,
  },
  {
    name: 'a crash is noted once',
    promise: 'The death of one worker is noted at most once on each job that it held.',
    breach: 'otherFaults',
    reads: 'jobs of dead workers',
    judge: notedTwice,
  },
  {
    name: 'crashes are what was noted',
    promise:
      'The store counts every crash that a worker was told of, and of those while alone no more than quarantine takes.',
    breach: 'otherFaults',
    reads: 'the crashes that workers were told of, and the records of the store',
    judge: crashesMiscounted,
  },
  {
    name: 'nobody innocent is quarantined',
    promise: 'A job that does not kill its workers is never dead (poison).',
    breach: 'quarantinedInnocents',
    reads: 'the plan, and the ends of jobs',
    judge: innocentQuarantined,
  },
  {
    name: 'quarantine follows two crashes alone',
    promise:
      'A job is dead (poison) only after two crashes while it ran alone, or at the age at which a crash ends it.',
    breach: 'quarantinedInnocents',
    reads: 'jobs that are dead (poison)',
    judge: hastyQuarantine,
  },
]

const TERMINAL: ReadonlySet<string> = new Set(['completed', 'cancelled', 'dead'])

function endOf(hold: Hold): Hold['told'][number] | undefined {
  return hold.told.find(({ as }) => TERMINAL.has(as))
}

/** By fences, which need no common clock. A repeated effect and a second start at most once are judged by other rules. */
function heldAfterEnd({ expected, traces }: Story, { clocks, covers }: Scene): Ruling {
  let judged = false
  for (const { id, holds, asks } of traces) {
    const redriven = asks.some((ask) => mayHaveBeen(ask, 'redrive', 'ok'))
    for (const [i, hold] of holds.entries()) {
      const end = endOf(hold)
      if (end === undefined) continue
      judged = true
      if ((end.as === 'dead' && redriven) || expected?.delivery === 'at-most-once') continue
      const later = hold.crash === undefined ? holds.slice(i + 1) : clocks === 'shared' ? holds : []
      // One that nobody saw being redriven begins anew.
      const unseen = end.as === 'dead' && covers === 'workers'
      const again = later.find((one) => isAgain(one, hold, end.at) && !(unseen && one.attempt === 1))
      if (again !== undefined)
        return { broken: `job ${id} was ${end.as} in ${hold.process}, and then claimed in ${again.process}` }
    }
  }
  return judged ? 'kept' : 'not judged'
}

function isAgain(later: Hold, ended: Hold, at: number): boolean {
  if (later === ended || later.crash !== undefined) return false
  // Two effects are judged by the rule about effects.
  if (later.effectAt !== undefined && ended.effectAt !== undefined) return false
  // The end of a take-over has no fence: what began after it was told came later.
  return ended.crash === undefined || (later.claimed?.call?.askedAt ?? later.startedAt ?? -Infinity) > at
}

function startedUnclaimed({ traces }: Story, { has }: Scene): Ruling {
  let judged = false
  for (const { id, runs } of traces)
    for (const { process, claimed, fence } of runs) {
      if (!has.claiming.has(process)) continue
      judged = true
      if (claimed === undefined)
        return { broken: `job ${id} started in ${process} under fence ${fence}, which nobody had claimed it under` }
    }
  return judged ? 'kept' : 'not judged'
}

/** Only a handler that ran can have come to this. */
const OF_A_RUN: ReadonlySet<string> = new Set(['completed', 'failed', 'timed out', 'snoozed'])

/** Second ends are judged by a rule of their own. */
function settledUnheld({ traces }: Story, { has }: Scene): Ruling {
  let judged = false
  for (const { id, settlements, holds } of traces) {
    if (settlements.filter(({ as }) => TERMINAL.has(as)).length > 1) continue
    for (const settlement of settlements) {
      const { process, as } = settlement
      const own = holds.filter((hold) => hold.process === process)
      const knowsStarts = has.expectations || has.starting.has(process)
      if (!has.claiming.has(process) && !(knowsStarts && OF_A_RUN.has(as))) continue
      judged = true
      if (own.length === 0 && as !== 'dead' && as !== 'cancelled')
        return { broken: `${process} was told that job ${id} is ${as}, and had never held it` }
      const hold = own.find(({ told }) => told.includes(settlement))
      if (OF_A_RUN.has(as) && hold?.startedAt === undefined && !refusedUnstarted(hold))
        return { broken: `${process} was told that job ${id} is ${as}, and had not started it` }
    }
  }
  return judged ? 'kept' : 'not judged'
}

/** A payload that the handler's schema refuses fails without a start. */
function refusedUnstarted(hold: Hold | undefined): boolean {
  return hold?.claimed !== undefined && hold.told.some(({ as }) => as === 'failed')
}

// Attempts.

/** What the walk from one hold to the next may add to the number of the attempt: least and most. */
function stepOf(hold: Hold, next: Hold, trace: Trace, scene: Scene): readonly [number, number] {
  const told = toldOf(hold)
  if (told?.as === 'failed' || told?.as === 'timed out') return unseen(1, trace, scene)
  if (told?.as === 'snoozed' || told?.as === 'given back') return unseen(0, trace, scene)
  const crash = crashOf(hold, trace, scene)
  // One that was noted later may be of a hold of the same worker that nobody came to see.
  if (crash !== undefined && crash.at <= (next.startedAt ?? Number.POSITIVE_INFINITY)) {
    const least = crash.started ? 1 : 0
    const most = mayHaveComeBack(hold, scene) ? 1 : least
    return [least, unseen(most, trace, scene)[1]]
  }
  // Let go by a beat, or lost in a crash of which nobody came to tell.
  return [0, unseen(1, trace, scene)[1]]
}

/**
 * It ran to a failure that may have been settled, and its worker may have claimed the job once more: both answers were lost
 * with the worker (or the claim was a repeat, which nobody waits for), so its crash is of a hold that nobody came to see, and
 * the attempt was used before.
 */
function mayHaveComeBack({ claimed, finishedAs }: Hold, { calls }: Scene): boolean {
  if (finishedAs === undefined || !MAY_USE_ONE.has(finishedAs)) return false
  if (claimed?.call === undefined) return true
  return calls.some((call) => call.worker === claimed.worker && mayTakeUnseen(call))
}

const MAY_USE_ONE: ReadonlySet<string> = new Set(['failed', 'postponed', 'aborted'])

/** Deaths of workers of which nobody came to tell may have used attempts in between. */
function unseen(step: number, { crashes, records }: Trace, { takeOvers, kills }: Scene): readonly [number, number] {
  const [record] = records
  if (record !== undefined && !record.redrives) return [step, step + Math.max(0, record.crashes - crashes.length)]
  // Who came to tell has to have died as well.
  const deaths = Math.max(new Set(takeOvers.map(({ deadWorker }) => deadWorker)).size, kills.length)
  return [step, step + Math.max(0, deaths - 1)]
}

/** The one that was noted because the worker of this hold died: it had the job for the last time then. */
function crashOf(hold: Hold, { crashes, holds }: Trace, { workers }: Scene): Trace['crashes'][number] | undefined {
  if (crashes.length === 0) return undefined
  const worker = hold.claimed?.worker
  const own = holds.findLast((one) => one.process === hold.process && one.claimed?.worker === worker && !one.crash)
  if (own !== hold) return undefined
  return crashes.find(
    ({ deadWorker }) => deadWorker === worker || (worker === undefined && workers.get(deadWorker) === hold.process),
  )
}

function wrongCount({ traces }: Story, scene: Scene): Ruling {
  let judged = false
  for (const trace of traces) {
    const holds = trace.holds.filter(({ attempt, crash }) => attempt !== undefined && crash === undefined)
    if (holds.length === 0 || trace.asks.some(({ operation }) => operation === 'redrive')) continue
    judged = true
    const [first] = holds
    if (trace.crashes.length === 0 && first!.attempt! > 1 && isWhole(trace, scene))
      return { broken: `job ${trace.id} was first held in attempt ${first!.attempt}, and none was used before` }
    for (let i = 1; i < holds.length; i++) {
      // What follows an end is the matter of another rule.
      if (endOf(holds[i - 1]!) !== undefined) continue
      const [least, most] = stepOf(holds[i - 1]!, holds[i]!, trace, scene)
      const step = holds[i]!.attempt! - holds[i - 1]!.attempt!
      if (step < least || step > most) return { broken: stepWords(trace.id, holds[i - 1]!, holds[i]!) }
    }
  }
  return judged ? 'kept' : 'not judged'
}

/** All of its life is in the history: a recorded log may begin in the middle. */
function isWhole({ records }: Trace, { has, kills, takeOvers }: Scene): boolean {
  return has.records ? records[0]?.crashes === 0 : has.expectations && kills.length + takeOvers.length === 0
}

function stepWords(id: string, hold: Hold, next: Hold): string {
  const told = toldOf(hold)?.as ?? 'never told'
  return `job ${id} came from attempt ${hold.attempt} (${told}, in ${hold.process}) to attempt ${next.attempt} in ${next.process}`
}

function beyondTheLast({ expected, traces }: Story): Ruling {
  // A second start at most once is judged by a rule of its own.
  if (expected?.attempts === undefined || expected.delivery === 'at-most-once') return 'not judged'
  const { attempts } = expected
  let judged = false
  for (const { id, runs } of traces) {
    judged ||= runs.length > 0
    const beyond = runs.find(({ attempt }) => (attempt ?? 0) > attempts)
    if (beyond !== undefined)
      return { broken: `job ${id} started in attempt ${beyond.attempt}, and has ${attempts} attempts` }
  }
  return judged ? 'kept' : 'not judged'
}

// Crashes.

function notedTwice({ traces }: Story): Ruling {
  let judged = false
  for (const { id, crashes } of traces) {
    judged ||= crashes.length > 0
    const workers = new Set(crashes.map(({ deadWorker }) => deadWorker))
    if (workers.size < crashes.length)
      return { broken: `on job ${id} ${crashes.length} crashes of ${workers.size} workers were noted` }
  }
  return judged ? 'kept' : 'not judged'
}

function crashesMiscounted({ traces }: Story): Ruling {
  let judged = false
  for (const { id, crashes, records, asks } of traces) {
    const [record] = records
    if (record === undefined || asks.some(({ operation }) => operation === 'redrive')) continue
    if (crashes.length === 0 && record.crashes === 0) continue
    judged = true
    const alone = crashes.filter((crash) => crash.alone && crash.started).length
    const wrong =
      record.crashes < crashes.length ||
      record.crashesAlone < alone ||
      record.crashesAlone > Math.min(record.crashes, QUARANTINE_CRASHES_ALONE)
    if (wrong)
      return {
        broken: `job ${id} has ${record.crashes} crashes, ${record.crashesAlone} of them alone, and ${crashes.length} were told, ${alone} of them alone`,
      }
  }
  return judged ? 'kept' : 'not judged'
}

function innocentQuarantined({ expected, traces }: Story): Ruling {
  if (expected?.ends === undefined || expected.ends.includes('poison')) return 'not judged'
  for (const { id, records, settlements } of traces) {
    const record = records.find(({ reason }) => reason === 'poison')
    const told = settlements.some(({ reason }) => reason === 'poison')
    if (record === undefined && !told) continue
    const facts = record ? `, after ${record.crashes} crashes, ${record.crashesAlone} of them alone` : ''
    return { broken: `job ${id} was quarantined${facts}, and does not kill its workers` }
  }
  return traces.length > 0 ? 'kept' : 'not judged'
}

/** Innocent ones are judged by the rule above. */
function hastyQuarantine({ expected, traces }: Story, { has }: Scene): Ruling {
  if (expected?.ends !== undefined && !expected.ends.includes('poison')) return 'not judged'
  let judged = false
  for (const trace of traces) {
    const record = trace.records.find(({ reason }) => reason === 'poison')
    const told = trace.settlements.find(({ reason }) => reason === 'poison')
    if ((record === undefined && told === undefined) || isOld(trace.runs)) continue
    judged = true
    const alone = record?.crashesAlone ?? trace.crashes.filter((crash) => crash.alone && crash.started).length
    // Who noted an earlier crash may have died before it could tell; the last one is told together with the end.
    const least = record !== undefined || has.expectations ? QUARANTINE_CRASHES_ALONE : 1
    if (alone < least) return { broken: `job ${trace.id} is dead (poison) after ${alone} crashes alone` }
  }
  return judged ? 'kept' : 'not judged'
}

function isOld(runs: readonly Run[]): boolean {
  return runs.length > 0 && runs.at(-1)!.startedAt - runs[0]!.startedAt >= AGE_LIMIT_MS
}
