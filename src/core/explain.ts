/**
 * Why a job runs or does not run now: facts in, verdict out. A rule is one entry of one table; the order of the table is
 * the order in which the rules hold a job. Pure; called by the client with what `inspect.facts` answers.
 */
import { formatDuration } from './duration.js'
import type { Clause, ClauseCode, ClauseFields, Explanation, Note } from './explanation.js'
import { attemptNumber, type DeadReason, type JobState } from './job.js'
import type { JobFacts, KeySeen, LeaseSeen, WorkerSeen } from './job-facts.js'
import { grouped } from './show.js'
import { ableWorkers, freeSlots, roomOf, standingOf, surelyTaken } from './standing.js'

type Rule<Code extends ClauseCode> = (facts: JobFacts) => ({ sentence: string } & ClauseFields[Code]) | null

/** In the order in which they hold a job. A new clause is an entry here and its fields above. */
const RULES: { readonly [Code in ClauseCode]: Rule<Code> } = {
  ended: ({ job: { state, endedAt }, nowMs }) =>
    state === 'completed' || state === 'cancelled'
      ? {
          sentence: `it ${state === 'completed' ? 'completed' : 'was cancelled'} ${agoText(endedAt!, nowMs)}`,
          state,
          endedAt: endedAt!,
        }
      : null,
  dead: ({ job: { state, reason, endedAt }, nowMs }) =>
    state === 'dead' && reason !== undefined
      ? {
          sentence: `it died ${agoText(endedAt!, nowMs)}: ${DEATHS[reason]}`,
          reason,
          endedAt: endedAt!,
          redrive: reason === 'lost' ? 'needs force' : 'ok',
        }
      : null,
  running,
  'not due': ({ job: { state, dueAt, history, spec }, nowMs }) => {
    if (!isDelayed(state) || dueAt! <= nowMs) return null
    const attempt = attemptNumber(history)
    const what = history === null ? 'it was delayed' : `it waits for attempt ${attempt} of ${spec.attempts}`
    return { sentence: `${what}: not due until ${momentText(dueAt!, nowMs)}`, dueAt: dueAt!, attempt }
  },
  'not promoted': ({ job: { state, dueAt }, workers, workersElsewhere, nowMs }) => {
    if (!isDelayed(state) || dueAt! > nowMs) return null
    const alive = workers.length + workersElsewhere
    const who = alive > 0 ? 'a worker makes it ready within seconds' : 'no worker is alive to make it ready'
    return { sentence: `it has been due for ${formatDuration(nowMs - dueAt!)}: ${who}`, dueAt: dueAt!, alive }
  },
  paused: ({ job, queue }) =>
    isPending(job.state) && queue.paused
      ? { sentence: `queue ${job.queue} is paused: no claim of it begins until it is resumed`, queue: job.queue }
      : null,
  concurrency: ({ job, queue: { concurrency } }) => {
    if (!isPending(job.state) || concurrency === undefined || concurrency.held < concurrency.limit) return null
    const { limit, held, holders } = concurrency
    const ids = holders.map(({ id }) => id)
    const who = ids.length === 0 ? '' : `: ${some(ids, held)}`
    return {
      sentence: `${grouped(held)} of at most ${grouped(limit)} jobs of queue ${job.queue} run${who}`,
      limit,
      held,
      holders,
    }
  },
  rate: ({ job, queue: { rate }, nowMs }) =>
    isPending(job.state) && rate !== undefined && rate.tokens === 0
      ? {
          sentence: `the rate limit of queue ${job.queue} is used up: the next start is at ${momentText(rate.nextAt, nowMs)}`,
          nextAt: rate.nextAt,
        }
      : null,
  key: ({ job, key }) => {
    if ((job.state !== 'ready' && job.state !== 'blocked') || key === undefined || key.holds) return null
    const why = keyText(key)
    const free = job.state === 'blocked' ? `${keyName(key)} is free: a worker makes it ready within seconds` : null
    const sentence = why ?? free
    if (sentence === null) return null
    const { holds: _, ...told } = key
    return { sentence, ...told }
  },
  'suspect running': ({ job, suspectRunning }) =>
    isPending(job.state) && job.suspect && suspectRunning !== null
      ? {
          sentence: `it has to run alone, one such job of queue ${job.queue} at a time: ${suspectRunning.id} runs`,
          ...suspectRunning,
        }
      : null,
  'no worker': ({ job, workers, workersElsewhere }) => {
    if (!isPending(job.state) || workers.length > 0) return null
    const others =
      workersElsewhere === 0 ? '' : `; ${count(workersElsewhere, 'serves', 'serve', 'worker')} other queues`
    return { sentence: `no worker that is alive serves queue ${job.queue}${others}`, queue: job.queue }
  },
  'no able worker': (facts) => {
    const { job, workers } = facts
    if (!isPending(job.state) || workers.length === 0 || ableWorkers(facts).length > 0) return null
    return {
      sentence: `no worker of queue ${job.queue} has kind ${job.kind}: ${count(workers.length, 'serves', 'serve', 'worker')} it, with ${kindsText(workers)}`,
      kind: job.kind,
      serving: workers.length,
      workers: workers.slice(0, SHOWN_MAX).map(({ id, name, kinds }) => ({ id, name, kinds: [...kinds!] })),
    }
  },
  'its turn': itsTurn,
}

/** In the order in which they hold a job. */
export const CLAUSE_CODES: readonly ClauseCode[] = Object.keys(RULES) as ClauseCode[]

const SHOWN_MAX = 10

/** Why the job runs or does not run. */
export function explain(facts: JobFacts): Explanation {
  const { job, nowMs } = facts
  const clauses = CLAUSE_CODES.flatMap((code) => clauseOf(code, facts))
  const [first, ...more] = clauses
  if (first === undefined) throw new Error(`invariant broken: nothing explains a job that is ${job.state}`)
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    priority: job.priority,
    state: job.state,
    nowMs,
    verdict: verdictOf(first),
    clauses: [first, ...more],
    notes: notesOf(facts),
  }
}

function clauseOf(code: ClauseCode, facts: JobFacts): Clause[] {
  const told = RULES[code](facts)
  return told === null ? [] : [{ code, ...told } as Clause]
}

function verdictOf(first: Clause): Explanation['verdict'] {
  switch (first.code) {
    case 'ended':
    case 'dead':
      return 'ended'
    case 'running':
      return 'running'
    case 'its turn':
      return first.next ? 'next' : 'in line'
    default:
      return 'held'
  }
}

function keyName({ key, ordered }: KeySeen): string {
  return `${ordered ? 'order' : 'limit'} key ${JSON.stringify(key)}`
}

/** Why a claim would not take it; null where it would. */
function keyText(key: KeySeen): string | null {
  const { ordered, limit, held, holders, ahead } = key
  if (ordered && held > 0) return `${keyName(key)}: ${some(holders, held)} goes first, and has not ended`
  if (ordered) return ahead === null ? null : `${keyName(key)}: ${ahead} goes first, and has not started`
  if (limit === null || held < limit) return null
  return `${grouped(held)} of at most ${grouped(limit)} jobs of ${keyName(key)} run: ${some(holders, held)}`
}

const DEATHS: Record<DeadReason, string> = {
  failed: 'its attempts are used up',
  poison: 'workers died of it, twice while it ran alone',
  expired: 'it was not started in time',
  rejected: 'its handler refused it',
  lost: 'it may run once only, and its worker was lost while it had it',
}

function running({ job, lease, workers, workersElsewhere, nowMs }: JobFacts): ReturnType<Rule<'running'>> {
  if (lease === null) return null
  const { worker, claimedAt, holder, adopted } = lease
  const silent = isSilent(lease)
  const attempt = attemptNumber(job.history)
  const since = job.startedAt ?? claimedAt
  const who = holder?.name ?? worker
  const nobody = workers.length + workersElsewhere === 0 ? ' as soon as one is alive: none is now' : ''
  const does =
    job.startedAt === null ? `claimed it ${agoText(since, nowMs)}` : `has run it for ${formatDuration(nowMs - since)}`
  const told = job.startedAt === null ? '; its start was not told yet' : ''
  const sentence = silent
    ? `${who} had it and ${silenceText(holder)}: another worker takes it over${nobody}`
    : adopted
      ? `${who} took it over from a worker that died, and decides what becomes of it`
      : `${who} ${does}, attempt ${attempt} of ${job.spec.attempts}${told}; ${beatText(holder)}`
  return {
    sentence,
    holder: silent ? 'silent' : adopted ? 'adopted' : 'alive',
    worker,
    name: holder?.name ?? null,
    claimedAt,
    startedAt: job.startedAt,
    attempt,
    lastBeatAgoMs: holder?.lastBeatAgoMs ?? null,
    mainLagMs: holder?.mainLagMs ?? null,
  }
}

type Holder = LeaseSeen['holder']

/** Its beats, or its main loop, have been silent for more than a lease; or the store knows it no more. */
function isSilent({ holder }: LeaseSeen): boolean {
  return holder === null || holder.lastBeatAgoMs + holder.mainLagMs > holder.leaseMs
}

function silenceText(holder: Holder): string {
  if (holder === null) return 'is not known any more'
  const { lastBeatAgoMs, mainLagMs, leaseMs } = holder
  return `has been silent for ${formatDuration(lastBeatAgoMs + mainLagMs)}, longer than its lease of ${formatDuration(leaseMs)}`
}

/** A lag of two beats or more is worth a word: at the length of a lease it costs the worker all that it holds. */
function beatText(holder: Holder): string {
  if (holder === null) return ''
  const { lastBeatAgoMs, mainLagMs, beatMs } = holder
  const lag = mainLagMs > 2 * beatMs ? `, and its main loop has not answered for ${formatDuration(mainLagMs)}` : ''
  return `its last beat was ${formatDuration(lastBeatAgoMs)} ago${lag}`
}

function itsTurn(facts: JobFacts): ReturnType<Rule<'its turn'>> {
  const { job } = facts
  if (job.state !== 'ready') return null
  const held = CLAUSE_CODES.some((code) => code !== 'its turn' && RULES[code](facts) !== null)
  const able = ableWorkers(facts)
  const standing = standingOf(facts)
  const next = !held && able.some((worker) => takesNext(facts, worker, standing.rank))
  const turn = {
    ...standing,
    next,
    priority: job.priority,
    able: able.length,
    freeSlots: Math.min(
      roomOf(facts.queue),
      able.reduce((sum, worker) => sum + freeSlots(worker), 0),
    ),
  }
  return { sentence: turnText(facts, turn, held), ...turn }
}

function takesNext(facts: JobFacts, worker: WorkerSeen, rank: number): boolean {
  const limit = freeSlots(worker)
  return rank <= limit && surelyTaken(facts, { kinds: worker.kinds, limit })
}

function turnText({ job, queue }: JobFacts, turn: ClauseFields['its turn'], held: boolean): string {
  const ahead = turn.rank - 1
  const jobs = count(ahead, 'goes', 'go', job.suspect ? 'suspect' : 'job')
  const before = `${turn.exact ? '' : 'at least '}${ahead === 0 ? 'nothing goes' : jobs} before it in queue ${job.queue}`
  const order = job.suspect || ahead === 0 ? '' : ` (order ${queue.order})`
  if (held) return `then it is its turn: ${before}${order}`
  const free = turn.freeSlots === 0 ? 'all slots are taken' : `${count(turn.freeSlots, 'is', 'are', 'slot')} free`
  return turn.next ? `${before}, and ${free}: the next claim takes it` : `${before}${order}; ${free}`
}

/** What holds nobody, in the order in which it is told. */
const NOTES: { readonly [Code in Note['code']]: (facts: JobFacts) => Omit<Note, 'code'> | null } = {
  cancelling: ({ job, lease }) => {
    if (job.cancelling !== true || lease === null) return null
    const hears = isSilent(lease) ? 'it ends when it is taken over' : 'its handler gets its signal within a beat'
    return { sentence: `somebody wants it cancelled: ${hears}` }
  },
  expires: ({ job, nowMs }) => {
    const at = expiryOf(job)
    if (at === null) return null
    const when =
      at > nowMs ? `unless it starts by ${momentText(at, nowMs)}` : 'within seconds: its time to start is over'
    return { sentence: `it ends as dead (expired) ${when}`, at }
  },
  'times out': ({ job, lease, nowMs }) => {
    if (lease === null || job.startedAt === null || isSilent(lease)) return null
    const at = job.startedAt + job.spec.timeoutMs
    const ends = at > nowMs ? `ends at ${momentText(at, nowMs)}` : `was over ${agoText(at, nowMs)}`
    return { sentence: `the time of its attempt ${ends}`, at }
  },
  'runs alone': ({ job }) =>
    job.suspect && isPending(job.state)
      ? {
          sentence: `${grouped(job.history?.crashes ?? 0)} workers died while they held it: it runs alone, and a worker first ends or gives back what it has`,
        }
      : null,
  draining: ({ job, queue }) =>
    queue.draining && isPending(job.state)
      ? { sentence: `queue ${job.queue} drains: it refuses new jobs, and works off what it has` }
      : null,
}

function notesOf(facts: JobFacts): Note[] {
  return (Object.keys(NOTES) as Note['code'][]).flatMap((code) => {
    const told = NOTES[code](facts)
    return told === null ? [] : [{ code, ...told }]
  })
}

/** Only of one that waits and was never started, nor brought back from the dead. */
function expiryOf({ state, spec, history, enqueuedAt }: JobFacts['job']): number | null {
  if (!isPending(state) || spec.expiresInMs === undefined) return null
  if (history?.firstStartedAt !== undefined || (history?.redrives ?? 0) > 0) return null
  return enqueuedAt + spec.expiresInMs
}

function isDelayed(state: JobState): boolean {
  return state === 'delayed' || state === 'retrying'
}

function isPending(state: JobState): boolean {
  return state === 'ready' || state === 'blocked' || isDelayed(state)
}

function agoText(at: number, nowMs: number): string {
  return `${formatDuration(Math.max(0, nowMs - at))} ago`
}

/** Of an instant ahead. */
function momentText(at: number, nowMs: number): string {
  return `${new Date(at).toISOString()} (in ${formatDuration(Math.max(0, at - nowMs))})`
}

/** `1 worker serves`, `3 workers serve`. */
function count(n: number, one: string, many: string, what: string): string {
  return n === 1 ? `1 ${what} ${one}` : `${grouped(n)} ${what}s ${many}`
}

function some(texts: readonly string[], of: number): string {
  const shown = texts.slice(0, 3)
  return `${shown.join(', ')}${of > shown.length ? ` and ${grouped(of - shown.length)} more` : ''}`
}

function kindsText(workers: readonly WorkerSeen[]): string {
  const kinds = [...new Set(workers.flatMap(({ kinds }) => kinds ?? []))]
  return kinds.length === 0 ? 'no kind at all' : some(kinds, kinds.length)
}
