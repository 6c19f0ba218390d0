/** Plays one operation on one stage and answers what came of it, in a form that can be compared. Called by compare.ts. */
import { fingerprintOf } from '../../src/core/fingerprint.js'
import type {
  Control,
  Inspect,
  JobView,
  ListRequest,
  MatchedJob,
  MatchRequest,
  QueueLimits,
  Retention,
} from '../../src/storage/storage.js'
import {
  BEAT_MS,
  type Command,
  DEPTHS,
  type FilterSketch,
  INTAKES,
  KEY_LIMITS,
  KINDS,
  LEASE_MS,
  QUEUES,
  RATES,
  RETENTIONS_MS,
  STEPS_MS,
  TICK_MS,
  WORKERS,
} from './commands.js'
import { normalView, normalWorker, rounded, sortedMoves } from './normal.js'
import { beat, claim, enqueue, judge, plainBeat, register, settle, takeOver, unregister } from './play-work.js'
import { REASONS } from './sequences.js'
import type { Stage } from './stage.js'

const MINUTE_MS = 60_000
/** Steps of a walk or a sweep: more than any sequence has jobs. */
const STEPS_MAX = 3_000
const PRINTS = [null, ...['it broke', 'it gave way'].map((message) => fingerprintOf({ name: 'Error', message }))]
/** How long ago the bounds of filters lie. */
const AGES_MS = [0, 50, 100, 150, 500, 1_000, MINUTE_MS, 10 * MINUTE_MS]

/** The clock goes on, then the operation is done. What it throws is an answer, too. */
export async function play(stage: Stage, command: Command): Promise<unknown> {
  await stage.side.advance(TICK_MS + STEPS_MS[command.step]!)
  try {
    return plain(await done(stage, command))
  } catch (error) {
    return { threw: (error as { code?: string }).code ?? String(error) }
  }
}

/** As JSON, in which what is undefined is not there. */
function plain(answer: unknown): unknown {
  return answer === undefined ? null : JSON.parse(JSON.stringify(answer))
}

async function done(stage: Stage, command: Command): Promise<unknown> {
  switch (command.op) {
    case 'enqueue':
      return enqueue(stage, command.jobs)
    case 'claim':
      return claim(stage, command)
    case 'settle':
      return settle(stage, command.settlements)
    case 'beat':
      return beat(stage, command)
    case 'register':
      return register(stage, command.worker)
    case 'unregister':
      return unregister(stage, command.worker)
    case 'takeOver':
      return takeOver(stage, command.worker, command.limit)
    case 'pass':
      return pass(stage, command.beats, command.workers)
    case 'crash':
      return crash(stage, command)
    case 'poison':
      return poison(stage, command)
    case 'promote':
    case 'expire':
    case 'prune':
      return upkeep(stage, command)
    case 'get':
    case 'list':
    case 'match':
    case 'groups':
    case 'look':
      return look(stage, command)
    default:
      return steer(stage, command)
  }
}

/** Time goes by in which these workers beat as they should. */
async function pass(stage: Stage, beats: number, workers: readonly number[]): Promise<unknown> {
  const answers: unknown[] = []
  for (let beat = 0; beat < beats; beat++) {
    await stage.side.advance(BEAT_MS)
    for (const [nth, worker] of workers.entries()) {
      if (nth > 0) await stage.side.advance(1)
      answers.push(await plainBeat(stage, worker))
    }
  }
  // The milliseconds between the beats and the rest of a tick.
  await stage.side.advance(TICK_MS - beats * Math.max(0, workers.length - 1))
  return answers
}

/** More than a lease. */
const CRASH_BEATS = Math.floor(LEASE_MS / BEAT_MS) + 1

async function crash(
  stage: Stage,
  { survivors, limit, judges }: Omit<Extract<Command, { op: 'crash' }>, 'op' | 'step'>,
): Promise<unknown> {
  const [heir] = survivors
  const beats = await pass(stage, CRASH_BEATS, survivors)
  const adopted = await takeOver(stage, heir!, limit)
  const settled = judges ? await judge(stage, heir!) : null
  for (let seat = 0; seat < WORKERS - 1; seat++)
    if (!survivors.includes(seat)) await next(stage, () => register(stage, seat))
  return { beats, adopted, settled }
}

/** A worker that claims what there is, suspects first, may tell of starts, and is heard of no more. */
async function poison(stage: Stage, command: Extract<Command, { op: 'poison' }>): Promise<unknown> {
  const { heir, limit, started } = command
  const victim = (heir + 1) % WORKERS
  const queues = QUEUES.map((_, queue) => ({ queue, share: limit, turn: 0 }))
  const wish = { which: 'next', queues, limit, kinds: [0, 1, 2], apart: [], suspects: true, finished: [] } as const
  const told = { which: 'next', forgets: 0, behind: false, strange: 0, lagMs: 0 } as const
  const rounds: unknown[] = []
  for (let round = 0; round < command.rounds; round++) {
    await next(stage, () => register(stage, victim))
    const promoted = await next(stage, () => upkeep(stage, { op: 'promote', limit: 40 }))
    const claimed = await next(stage, () => claim(stage, { ...wish, worker: victim }))
    await next(stage, () => beat(stage, { ...told, worker: victim, started }))
    rounds.push(promoted, claimed, await crash(stage, { survivors: [heir], limit: 40, judges: true }))
  }
  return rounds
}

async function next<Answer>(stage: Stage, run: () => Promise<Answer>): Promise<Answer> {
  await stage.side.advance(TICK_MS)
  return run()
}

type Upkeeping = Unstepped<Extract<Command, { op: 'promote' | 'expire' | 'prune' }>>
type Unstepped<C> = C extends unknown ? Omit<C, 'step'> : never

async function upkeep(stage: Stage, command: Upkeeping): Promise<unknown> {
  const { upkeep } = stage.store
  if (command.op === 'promote') {
    const { moved, nextDueMs } = await upkeep.promote(command.limit)
    return { moved, nextDueMs: rounded(nextDueMs) }
  }
  if (command.op === 'expire') return sortedMoves(await upkeep.expire(STEPS_MAX))
  const retention: Retention = {
    completedMs: RETENTIONS_MS[command.completed]!,
    deadMs: RETENTIONS_MS[command.dead]!,
    completedMax: command.completedMax === 0 ? undefined : command.completedMax,
    deadMax: command.deadMax === 0 ? undefined : command.deadMax,
  }
  // Twice: a key goes with its dead letter, or in the step after that.
  for (let round = 0; round < 2; round++) await toTheEnd(() => upkeep.prune({ ...retention, limit: command.limit }))
  return 'pruned'
}

/** How many were deleted, in as many steps as the store needs. */
async function toTheEnd(step: () => Promise<{ deleted: number; more: boolean }>): Promise<number> {
  let deleted = 0
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const answer = await step()
    deleted += answer.deleted
    if (!answer.more) return deleted
  }
  throw new Error('it says that there is more for ever')
}

type Steering = Extract<
  Command,
  { op: 'cancel' | 'retry' | 'discard' | 'redrive' | 'pause' | 'resume' | 'refuse' | 'purge' | 'order' | 'limit' }
>

async function steer(stage: Stage, command: Steering): Promise<unknown> {
  const control = stage.store.control as Control
  switch (command.op) {
    case 'cancel':
      return control.cancel(stage.idsAt(command.jobs), inStates(OPEN_STATES, command.only))
    case 'retry':
      return control.retry(stage.idsAt(command.jobs), inStates(WAITING_STATES, command.only))
    case 'discard':
      return control.discard(await stage.deadOrAny(command.jobs), deadBefore(stage, command.only))
    case 'redrive':
      return control.redrive(await stage.deadOrAny(command.jobs), {
        force: command.force,
        ...deadBefore(stage, command.only),
      })
    case 'pause':
      return control.pause(QUEUES[command.queue]!)
    case 'resume':
      return control.resume(QUEUES[command.queue]!)
    case 'refuse':
      return control.refuse(QUEUES[command.queue]!)
    case 'purge':
      return toTheEnd(() => control.purge(QUEUES[command.queue]!, command.limit))
    case 'order':
      return control.order(QUEUES[command.queue]!, command.order)
    case 'limit':
      return control.limit(QUEUES[command.queue]!, limitsOf(command))
  }
}

function limitsOf({
  concurrency,
  rate,
  depth,
  intake,
  perKey,
}: Extract<Command, { op: 'limit' }>): Partial<QueueLimits> {
  return {
    ...(concurrency === 0 ? {} : { concurrency: concurrency === 1 ? null : concurrency - 1 }),
    ...(rate === 0 ? {} : { rate: RATES[rate - 2] ?? null }),
    ...(depth === 0 ? {} : { depth: DEPTHS[depth - 2] ?? null }),
    ...(intake === 0 ? {} : { intake: INTAKES[intake - 2] ?? null }),
    ...(perKey === 0 ? {} : { perKey: KEY_LIMITS[perKey - 2] ?? null }),
  }
}

const OPEN_STATES = ['ready', 'delayed', 'retrying', 'blocked', 'running'] as const
const WAITING_STATES = ['delayed', 'retrying'] as const

/** One of the states, or two. */
function inStates<State>(states: readonly State[], only: number): { states: State[] } | undefined {
  if (only === 0) return undefined
  return { states: states.filter((_, at) => at === only % states.length || at === only % 3) }
}

function deadBefore(stage: Stage, only: number): { endedBefore?: number } {
  return only === 0 ? {} : { endedBefore: stage.side.nowMs() - AGES_MS[only]! }
}

async function look(
  stage: Stage,
  command: Extract<Command, { op: 'get' | 'list' | 'match' | 'groups' | 'look' }>,
): Promise<unknown> {
  const inspect = stage.store.inspect as Inspect
  switch (command.op) {
    case 'get':
      return (await inspect.get(stage.idsAt(command.jobs))).map((view) => normalView(view ?? null))
    case 'list':
      return list(inspect, stage, command.filter)
    case 'match':
      return match(inspect, stage, command.filter)
    case 'groups': {
      const { groups, complete } = await inspect.deadGroups({ ...scope(command), limit: command.limit })
      return {
        groups: groups.map((group) => ({
          ...group,
          oldestAt: rounded(group.oldestAt),
          newestAt: rounded(group.newestAt),
        })),
        complete,
      }
    }
    case 'look': {
      const queue = QUEUES[command.queue]!
      const [counts, queues, workers] = [await inspect.counts(queue), await inspect.queues(), await inspect.workers()]
      return { counts, queues, workers: workers.map(normalWorker) }
    }
  }
}

function scope({ queue, kind }: { queue: number; kind: number }): { queue?: string; kind?: string } {
  return {
    ...(queue === 0 ? {} : { queue: QUEUES[queue - 1]! }),
    ...(kind === 0 ? {} : { kind: KINDS[kind - 1]! }),
  }
}

function instants(stage: Stage, { since, before }: FilterSketch): { since?: number; before?: number } {
  const ago = (index: number): number => stage.side.nowMs() - AGES_MS[index - 1]!
  return { ...(since === 0 ? {} : { since: ago(since) }), ...(before === 0 ? {} : { before: ago(before) }) }
}

/** Reasons and fingerprints are asked of dead ones only. */
function ofDead({ state, reason, fingerprint }: FilterSketch): Pick<MatchRequest, 'reason' | 'fingerprint'> {
  if (state !== 'dead') return {}
  return {
    ...(reason === 0 ? {} : { reason: REASONS[reason - 1]! }),
    ...(fingerprint === 0 ? {} : { fingerprint: PRINTS[fingerprint - 1]! }),
  }
}

/** All pages, one after the other. */
async function list(inspect: Inspect, stage: Stage, filter: FilterSketch): Promise<unknown> {
  const { since, before } = instants(stage, filter)
  const ended = ['completed', 'cancelled', 'dead'].includes(filter.state)
  const request: ListRequest = {
    state: filter.state,
    limit: filter.limit,
    ...scope(filter),
    ...ofDead(filter),
    ...(ended && since !== undefined ? { endedAfter: since } : {}),
    ...(ended && before !== undefined ? { endedBefore: before } : {}),
  }
  const jobs = await walked<JobView>((after) => inspect.list({ ...request, ...after }))
  return jobs.map(normalView)
}

async function match(inspect: Inspect, stage: Stage, filter: FilterSketch): Promise<unknown> {
  const { state } = filter
  if (state === 'completed' || state === 'cancelled') return null
  const request = { state, limit: filter.limit, ...scope(filter), ...ofDead(filter), ...instants(stage, filter) }
  const jobs = await walked<MatchedJob>((after) => inspect.match({ ...request, ...after }))
  return state === 'dead' ? jobs : sortedMoves(jobs)
}

async function walked<Job>(
  page: (after: { after?: string }) => Promise<{ jobs: Job[]; next: string | null }>,
): Promise<Job[]> {
  const jobs: Job[] = []
  let after: { after?: string } = {}
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const { jobs: found, next } = await page(after)
    jobs.push(...found)
    if (next === null) return jobs
    after = { after: next }
  }
  throw new Error('the walk has no end')
}
