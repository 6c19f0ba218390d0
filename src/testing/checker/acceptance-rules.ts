/** Rules about what was accepted and what was refused: what a producer was told is so. In the table of rules.ts. */
import type { Expectation } from './expectation.js'
import { type Rule, type Ruling, ruled } from './rule.js'
import { shutSince } from './shut-queues.js'
import { acceptedIds, exists, mayHaveBeen, type Scene, type Story, type Told, type Trace, toldOf } from './story.js'

export const ACCEPTANCE_RULES: readonly Rule[] = [
  {
    name: 'what was accepted is known',
    promise: 'A job that was accepted is in the store until it ends, and its record for as long as records are kept.',
    breach: 'lost',
    reads: 'what producers were told, and the records of the store',
    judge: unknownToTheStore,
  },
  {
    name: 'one job for one enqueue',
    promise: 'However often its calls are cut or repeated, one enqueue makes one job at most.',
    breach: 'settledTwice',
    reads: 'what producers were told, and the plan',
    judge: severalJobs,
  },
  {
    name: 'a rollback leaves nothing',
    promise: 'A job of a transaction that was rolled back is not there, and never ran.',
    breach: 'otherFaults',
    reads: 'jobs that were enqueued in transactions',
    judge: rolledBackAndThere,
  },
  {
    name: 'a refusal leaves nothing',
    promise: 'A job whose enqueue was refused is not there, and never ran.',
    breach: 'otherFaults',
    reads: 'jobs of which producers were told nothing but refusals',
    judge: refusedAndThere,
  },
  {
    name: 'nothing comes unasked',
    promise: 'Every job that runs or is stored was enqueued by somebody.',
    breach: 'otherFaults',
    reads: 'the plan, and what producers sent',
    judge: unasked,
  },
  {
    name: 'a draining queue takes nothing',
    promise: 'After a drain was answered the queue refuses new jobs, until it is resumed.',
    breach: 'otherFaults',
    reads: 'jobs of a queue that was drained, and what producers were told',
    judge: takenWhileDraining,
  },
]

function unknownToTheStore(story: Story, scene: Scene): Ruling {
  if (!scene.has.records) return 'not judged'
  const accepted = acceptedIds(story, scene)
  if (accepted.size === 0 && !story.traces.some(exists)) return 'not judged'
  for (const id of accepted) {
    const trace = scene.traces.get(id)
    if (trace === undefined || (trace.records.length === 0 && !mayBeGone(trace, story, scene)))
      return { broken: `job ${id} was accepted, and the store does not know it` }
  }
  // Nobody was told that it was accepted, and still it ran: then it was in the store.
  const vanished = story.traces.find(
    (trace) => exists(trace) && trace.records.length === 0 && !mayBeGone(trace, story, scene),
  )
  return ruled(vanished && `job ${vanished.id} ran, and the store does not know it`)
}

/** It was deleted, by an operator or as its record was not to be kept. How many a purge deleted is judged elsewhere. */
export function mayBeGone(trace: Trace, { expected, sentAt }: Story, scene: Scene): boolean {
  if (trace.asks.some((ask) => mayHaveBeen(ask, 'discard', 'discarded'))) return true
  // Who had it expire may not have heard of it, as an answer was lost.
  const mayHaveEnded = hasEnded(trace) || mayHaveDied(trace, expected) || expected?.expiresInMs !== undefined
  const pruned = scene.retention === 'pruned' && mayHaveEnded
  // Dead letters are kept in any case.
  const unkept = (expected?.keep ?? 'all') !== 'all' && hasEnded(trace) && !hasDied(trace)
  if (pruned || unkept) return true
  return wasPurged(expected?.queue, sentAt, scene)
}

export function wasPurged(queue: string | undefined, sentAt: number | undefined, { queueAsks }: Scene): boolean {
  return queueAsks.some(
    (ask) => ask.operation === 'purge' && ask.queue === queue && (ask.answeredAt ?? Infinity) >= (sentAt ?? -Infinity),
  )
}

/** Somebody was told of its end, or it came so far that the end may have been told to one who died. */
function hasEnded({ settlements, runs, asks, expiredAt }: Trace): boolean {
  if (expiredAt !== undefined || settlements.some(({ as }) => TERMINAL.has(as))) return true
  if (runs.some(({ effectAt }) => effectAt !== undefined)) return true
  return asks.some((ask) => mayHaveBeen(ask, 'cancel', 'cancelled', 'signalled'))
}

/**
 * A run of which nobody was told may have been the last one: its worker was killed after the settlement, or whoever took its
 * work over was.
 */
function mayHaveDied({ runs }: Trace, { attempts = 1, ends }: Partial<Expectation> = {}): boolean {
  const untold = runs.filter((run) => (toldOf(run)?.as ?? 'lost') === 'lost')
  const rejects = ends?.includes('rejected') ?? true
  return (
    untold.some(({ attempt, finishedAs }) => (attempt ?? 1) >= attempts || (rejects && finishedAs === 'failed')) ||
    (untold.length > 1 && ends?.includes('poison') === true)
  )
}

function hasDied({ expiredAt, settlements }: Trace): boolean {
  return expiredAt !== undefined || settlements.some(({ as }) => as === 'dead')
}

const TERMINAL: ReadonlySet<string> = new Set(['completed', 'dead', 'cancelled'])

/** Jobs with a key are judged all together, as several enqueues may share one. */
function severalJobs(story: Story, scene: Scene): Ruling {
  if (story.expected === undefined || story.expected.key !== undefined) return 'not judged'
  const ids = acceptedIds(story, scene)
  for (const trace of story.traces) if (exists(trace)) ids.add(trace.id)
  if (ids.size === 0) return 'not judged'
  return ruled(ids.size > 1 ? `it became ${ids.size} jobs: ${[...ids].join(', ')}` : undefined)
}

function rolledBackAndThere({ told, traces }: Story, { transactions }: Scene): Ruling {
  let judged = false
  for (const { outcome, id, transaction } of told) {
    if (outcome !== 'created' || transaction === undefined) continue
    if (transactions.get(transaction) !== 'rolled back') continue
    judged = true
    const trace = traces.find((one) => one.id === id)
    if (trace && exists(trace))
      return { broken: `job ${id} is there, and its transaction ${transaction} was rolled back` }
  }
  return judged ? 'kept' : 'not judged'
}

/** DUPLICATE_ID says that it is there; of a key, another enqueue may have made the job. */
function refusedAndThere({ expected, sendings, told, traces }: Story): Ruling {
  if (expected?.key !== undefined || sendings > told.length || told.length === 0 || !told.every(isRefused))
    return 'not judged'
  const there = traces.find(exists)
  return ruled(there && `its enqueue was refused, and job ${there.id} is there`)
}

function isRefused({ outcome, code }: Told): boolean {
  return outcome === 'refused' && code !== 'DUPLICATE_ID'
}

function unasked({ n, expected, sentAt, traces }: Story, { has, retention }: Scene): Ruling {
  if (!has.expectations) return 'not judged'
  const there = traces.find((trace) => exists(trace) && (trace.n !== undefined || keepsRecord(trace, retention)))
  if (there === undefined) return 'not judged'
  if (expected !== undefined && sentAt !== undefined) return 'kept'
  const why = expected === undefined ? `has the number ${n}, which nobody planned` : 'is there, and nobody had sent it'
  return { broken: `job ${there.id} ${why}` }
}

/** What never ran, and whose record was pruned or discarded, has left nothing that tells its number. */
function keepsRecord({ asks }: Trace, retention: Scene['retention']): boolean {
  return retention === 'all kept' && !asks.some((ask) => mayHaveBeen(ask, 'discard', 'discarded'))
}

/** Only where every enqueue of it was sent while the queue surely drained. */
function takenWhileDraining({ expected, sentAt, told }: Story, scene: Scene): Ruling {
  const queue = expected?.queue
  if (queue === undefined || sentAt === undefined || scene.queueAsks.length === 0) return 'not judged'
  if (!told.some(({ outcome }) => outcome !== 'duplicate' && outcome !== 'unknown')) return 'not judged'
  const until = shutSince(scene, queue, 'refuse', sentAt)
  if (until === undefined || told.some(({ at }) => at >= until)) return 'not judged'
  const taken = told.find(({ outcome, id }) => outcome === 'created' && id !== undefined)
  return ruled(taken && `job ${taken.id} was created in queue ${queue}, which was draining`)
}
