/** Rules about how a job ends: that it does, as it has to, once, and as was told. In the table of rules.ts. */
import { SPEC_DEFAULTS } from '../../core/job.js'
import type { End, Expectation } from './expectation.js'
import type { StoreRecord } from './history.js'
import { type Rule, type Ruling, ruled } from './rule.js'
import { mayHaveBeen, type Scene, type Settlement, type Story, type Trace } from './story.js'

export const ENDING_RULES: readonly Rule[] = [
  {
    name: 'everything ends',
    promise: 'Every job comes to its end once faults are over: none waits or runs for ever.',
    breach: 'lost',
    reads: 'the records of the store',
    judge: unended,
  },
  {
    name: 'no completion without an effect',
    promise: 'A job is completed only after its handler has done its work.',
    breach: 'lost',
    reads: 'the effects of handlers, and the records of the store',
    judge: emptyCompletion,
  },
  {
    name: 'a job ends as its sort has to',
    promise:
      'A job whose handler succeeds is completed, one that always fails is dead, a rejected one is dead (rejected).',
    breach: 'lost',
    reads: 'the plan, and the records of the store',
    judge: wrongEnd,
  },
  {
    name: 'dead after exactly its attempts',
    promise: 'A job that always fails is dead when its attempts are used up, not sooner and not later.',
    breach: 'lost',
    reads: 'the plan, the starts of handlers, and the records of the store',
    judge: wrongAttempts,
  },
  {
    name: 'lost only with a dead worker',
    promise: 'An at-most-once job is dead (lost) only when the worker that had started it was lost.',
    breach: 'lost',
    reads: 'the records of at-most-once jobs that are dead (lost)',
    judge: lostForNothing,
  },
  {
    name: 'one end is told',
    promise: 'A job is settled exactly once: one worker is told of its end, and of one end.',
    breach: 'settledTwice',
    reads: 'what workers were told',
    judge: toldTwice,
  },
  {
    name: 'one record',
    promise: 'A job is in exactly one place of the store.',
    breach: 'settledTwice',
    reads: 'the records of the store',
    judge: recordedTwice,
  },
  {
    name: 'the store has the end that was told',
    promise: 'What a worker was told of the end of a job is what the store has of it.',
    breach: 'lost',
    reads: 'what workers were told, and the records of the store',
    judge: otherEndThanTold,
  },
]

const ENDS: ReadonlySet<string> = new Set(['completed', 'cancelled', 'dead'])

function unended({ traces }: Story): Ruling {
  const all = recordsOf(traces)
  if (all.length === 0) return 'not judged'
  const open = all.find(({ state }) => !ENDS.has(state))
  return ruled(open && `job ${open.id} is ${open.state}, and was to have ended`)
}

function emptyCompletion({ traces }: Story, { has }: Scene): Ruling {
  if (!has.effects) return 'not judged'
  const completed = traces.filter(({ records }) => records.some(({ state }) => state === 'completed'))
  if (completed.length === 0) return 'not judged'
  const empty = completed.find(({ runs }) => !runs.some(({ effectAt }) => effectAt !== undefined))
  return ruled(empty && `job ${empty.id} is completed, and no effect of it was written down`)
}

/** Who is quarantined without reason is judged by a rule of its own. */
function wrongEnd({ expected, traces }: Story): Ruling {
  if (expected?.ends === undefined) return 'not judged'
  const ends: readonly End[] = expected.ends
  const judged = recordsOf(traces).filter(({ state, reason }) => ENDS.has(state) && reason !== 'poison')
  if (judged.length === 0) return 'not judged'
  const wrong = judged.find((record) => !ends.includes(endOf(record)) && !wasCancelled(record, traces))
  return ruled(
    wrong &&
      `job ${wrong.id} (${expected.sort}) is ${wrong.state}${wrong.reason ? ` (${wrong.reason})` : ''}, and was to be ${ends.join(' or ')}`,
  )
}

function endOf({ state, reason }: StoreRecord): End {
  return state === 'dead' ? (reason ?? 'failed') : (state as End)
}

/** Somebody asked for it, which no plan of sorts has to know. */
function wasCancelled({ id, state }: StoreRecord, traces: readonly Trace[]): boolean {
  const asks = traces.find((trace) => trace.id === id)?.asks ?? []
  return state === 'cancelled' && asks.some((ask) => mayHaveBeen(ask, 'cancel', 'cancelled', 'signalled'))
}

/**
 * Each attempt was started; one alone counts from the report of its start on, which comes before the handler. A redrive
 * begins anew, so redriven ones are not judged.
 */
function wrongAttempts({ expected, traces }: Story): Ruling {
  if (expected?.attempts === undefined || !isHopeless(expected)) return 'not judged'
  const { attempts } = expected
  let judged = false
  for (const { id, runs, records, asks } of traces)
    for (const record of records) {
      if (record.state !== 'dead' || record.reason !== 'failed') continue
      if (asks.some(({ operation }) => operation === 'redrive')) continue
      judged = true
      if (record.attempts !== attempts)
        return { broken: `job ${id} is dead after ${record.attempts} attempts, and has ${attempts}` }
      const starts = runs.length + record.crashesAlone
      if (starts < attempts)
        return { broken: `job ${id} is dead after ${attempts} attempts, and was started ${starts} times` }
    }
  return judged ? 'kept' : 'not judged'
}

/** It can only fail. */
function isHopeless({ ends }: Expectation): boolean {
  return ends?.length === 1 && ends[0] === 'failed'
}

function lostForNothing({ traces }: Story, scene: Scene): Ruling {
  const lost = recordsOf(traces).filter(({ reason }) => reason === 'lost')
  if (lost.length === 0) return 'not judged'
  const found = lost.find(({ id, lostWith }) => !couldBeLost(id, lostWith, scene))
  return ruled(found && `job ${found.id} is dead (lost) with worker ${found.lostWith ?? 'nobody'}, which was not lost`)
}

/** The worker was killed, was given up by the store, or aborted the job itself as it had to stop. */
function couldBeLost(
  id: string,
  worker: string | undefined,
  { workers, processes, takeOvers, traces }: Scene,
): boolean {
  // One that said good bye without a word of it, as it had reported the start and was not answered, names nobody.
  if (worker === undefined) {
    const life = processes.get(traces.get(id)?.holds.at(-1)?.process ?? '')
    return life?.killedAt !== undefined || life?.goneAt !== undefined
  }
  const process = workers.get(worker)
  if (process === undefined) return false
  if (processes.get(process)?.killedAt !== undefined) return true
  if (takeOvers.some(({ deadWorker }) => deadWorker === worker)) return true
  return traces.get(id)!.runs.some((run) => run.process === process && run.told.some(({ as }) => as === 'dead'))
}

// Once.

const TERMINAL: ReadonlySet<string> = new Set(['completed', 'dead', 'cancelled'])

function toldTwice({ traces }: Story, { covers }: Scene): Ruling {
  let judged = false
  for (const { id, settlements, asks } of traces) {
    const ends = settlements.filter(({ as }) => TERMINAL.has(as))
    judged ||= ends.length > 0
    // Each redrive of a dead letter gives it one life more.
    const redriven = asks.filter((ask) => mayHaveBeen(ask, 'redrive', 'ok')).length
    const lives = 1 + (covers === 'workers' ? ends.filter(({ as }) => as === 'dead').length : redriven)
    if (ends.length > lives)
      return { broken: `the end of job ${id} was told ${ends.length} times: ${ends.map(endWords).join(', ')}` }
  }
  return judged ? 'kept' : 'not judged'
}

function endWords({ as, process }: Settlement): string {
  return `${as} to ${process}`
}

function recordedTwice({ traces }: Story): Ruling {
  if (traces.every(({ records }) => records.length === 0)) return 'not judged'
  const twice = traces.find(({ records }) => records.length > 1)
  return ruled(twice && `the store lists job ${twice.id} ${twice.records.length} times`)
}

function otherEndThanTold({ traces }: Story): Ruling {
  let judged = false
  for (const { id, settlements, records, asks } of traces) {
    const [record] = records
    const told = settlements.findLast(({ as }) => TERMINAL.has(as))
    if (record === undefined || records.length > 1 || told === undefined) continue
    if (asks.some((ask) => mayHaveBeen(ask, 'redrive', 'ok'))) continue
    judged = true
    if (!ENDS.has(record.state)) continue
    const same = told.as === record.state && (told.reason === undefined || told.reason === record.reason)
    if (!same)
      return {
        broken: `job ${id} is ${words(record.state, record.reason)}, and ${words(told.as, told.reason)} was told`,
      }
  }
  return judged ? 'kept' : 'not judged'
}

function words(state: string, reason: string | undefined): string {
  return reason === undefined ? state : `${state} (${reason})`
}

function recordsOf(traces: readonly Trace[]): StoreRecord[] {
  return traces.length === 1 ? traces[0]!.records : traces.flatMap(({ records }) => records)
}

/** The age after which a crash ends a job, however few crashes there were. */
export const AGE_LIMIT_MS = SPEC_DEFAULTS.ageLimitMs
