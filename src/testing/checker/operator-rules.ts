/** Rules about what operators were answered for single jobs. In the table of rules.ts. */
import type { Rule, Ruling } from './rule.js'
import { type Hold, type JobAsk, mayHaveBeen, type Scene, type Story, type Trace, toldOf } from './story.js'

export const OPERATOR_RULES: readonly Rule[] = [
  {
    name: 'nothing runs after its cancel',
    promise: 'After a cancel was answered `cancelled` nobody gets the job; after `signalled` nobody but who has it.',
    breach: 'otherFaults',
    reads: 'the answers to cancels, and later claims and starts, by one clock',
    judge: ranAfterCancel,
  },
  {
    name: 'a cancelled job is cancelled',
    promise: 'A job whose cancel was answered `cancelled` has ended so.',
    breach: 'otherFaults',
    reads: 'the answers to cancels, and the records of the store',
    judge: notCancelled,
  },
  {
    name: 'a redriven job lives again',
    promise: 'A dead letter whose redrive was answered `ok` is pending again, as the same job.',
    breach: 'lost',
    reads: 'the answers to redrives, and the records of the store',
    judge: notRedriven,
  },
  {
    name: 'a discarded job is gone',
    promise: 'A dead letter whose discard was answered `discarded` leaves no record, and never runs again.',
    breach: 'otherFaults',
    reads: 'the answers to discards, and the records of the store',
    judge: notDiscarded,
  },
]

function answered(trace: Trace, operation: JobAsk['operation'], ...answers: JobAsk['answer'][]): JobAsk[] {
  return trace.asks.filter(
    (ask) => ask.operation === operation && ask.answeredAt !== undefined && answers.includes(ask.answer),
  )
}

/** It was begun after this instant, as far as can be known. A lost one may be a late start of who had it before. */
function beganAfter(hold: Hold, at: number): boolean {
  if (hold.crash !== undefined || toldOf(hold)?.as === 'lost') return false
  const began = hold.claimed?.call?.askedAt ?? hold.startedAt
  return began !== undefined && began > at
}

function ranAfterCancel({ traces }: Story, { clocks }: Scene): Ruling {
  if (clocks === 'apart') return 'not judged'
  let judged = false
  for (const trace of traces)
    for (const { answer, answeredAt = Infinity } of answered(trace, 'cancel', 'cancelled', 'signalled')) {
      if (trace.asks.some((ask) => mayHaveBeen(ask, 'redrive', 'ok'))) continue
      judged = true
      const later = trace.holds.filter((hold) => beganAfter(hold, answeredAt))
      // Who has it may be about to start it when it is signalled.
      const [again] = answer === 'cancelled' ? later : later.filter((hold) => !mayHaveHadIt(hold, trace))
      if (again !== undefined)
        return { broken: `the cancel of job ${trace.id} was answered ${answer}, and then it began in ${again.process}` }
    }
  return judged ? 'kept' : 'not judged'
}

/** Without the call of its claim only the first hold of a job that was not seen before can be the one that was signalled. */
function mayHaveHadIt(hold: Hold, { holds }: Trace): boolean {
  return hold.claimed?.call === undefined && holds.indexOf(hold) === 0
}

function notCancelled({ traces }: Story): Ruling {
  let judged = false
  for (const trace of traces) {
    const [record] = trace.records
    if (record === undefined || answered(trace, 'cancel', 'cancelled').length === 0) continue
    judged = true
    if (record.state !== 'cancelled' && record.state !== 'ready' && record.state !== 'delayed')
      return { broken: `the cancel of job ${trace.id} was answered cancelled, and it is ${record.state}` }
  }
  return judged ? 'kept' : 'not judged'
}

/** The store counts them. What it did of those without an answer is not known. */
function notRedriven({ traces }: Story): Ruling {
  let judged = false
  for (const trace of traces) {
    const times = answered(trace, 'redrive', 'ok').length
    const [record] = trace.records
    if (times === 0 || record?.redrives === undefined) continue
    judged = true
    if (record.redrives < times)
      return { broken: `job ${trace.id} was redriven ${times} times, and the store knows of ${record.redrives}` }
  }
  return judged ? 'kept' : 'not judged'
}

function notDiscarded({ traces }: Story, { clocks, has }: Scene): Ruling {
  let judged = false
  for (const trace of traces) {
    const [discard] = answered(trace, 'discard', 'discarded')
    if (discard === undefined) continue
    judged ||= has.records
    if (trace.records.length > 0) return { broken: `job ${trace.id} was discarded, and the store has it` }
    const again = clocks === 'shared' ? trace.holds.find((hold) => beganAfter(hold, discard.answeredAt!)) : undefined
    if (again !== undefined) return { broken: `job ${trace.id} was discarded, and then it began in ${again.process}` }
  }
  return judged ? 'kept' : 'not judged'
}
