/** What there is to see, over all stores. A store that is away is missed and said to be, and hides nothing of the others. */
import { DRAINED_MS } from '../../core/capacity.js'
import { QueueError } from '../../core/errors.js'
import { JOB_STATES } from '../../core/job.js'
import type { QueueLimits } from '../../core/limits.js'
import type {
  CapacityFacts,
  Count,
  DeadGroup,
  DeadGroups,
  Inspect,
  JobPage,
  JobView,
  ListRequest,
  MatchPage,
  MatchRequest,
  QueueCounts,
  QueueView,
} from '../storage.js'
import { type Answers, type Heard, readAll, refuseSilent } from './asking.js'
import type { Member } from './member.js'
import { decodePlaces, encodePlaces, merged, nextOf } from './pages.js'

export function inspectOf(members: readonly Member[]): Inspect {
  return {
    get: (ids) => get(members, ids),
    list: (request) => list(members, request),
    match: (request) => match(members, request),
    deadGroups: (request) => deadGroups(members, request),
    queues: async () => queuesOf((await readAll(members, ({ inspect }) => inspect!.queues())).heard),
    counts: (queue) => counts(members, queue),
    facts: async (id) => {
      const answers = await readAll(members, ({ inspect }) => inspect!.facts(id))
      const found = answers.heard.find(({ answer }) => answer !== null)
      if (found === undefined) refuseSilent(answers, 'it may hold the job')
      return found?.answer ?? null
    },
    workers: async () => {
      const { heard } = await readAll(members, ({ inspect }) => inspect!.workers())
      return heard.flatMap(({ member, answer }) => answer.map((worker) => ({ ...worker, partition: member.name })))
    },
    capacity: async (queue) => capacityOf((await readAll(members, ({ inspect }) => inspect!.capacity(queue))).heard),
  }
}

/** Each store is asked, as no id tells where the job lives. */
async function get(members: readonly Member[], ids: readonly string[]): Promise<(JobView | null | undefined)[]> {
  const { heard, silent } = await readAll(members, ({ inspect }) => inspect!.get(ids))
  return ids.map((_, index) => {
    for (const { member, answer } of heard) {
      const view = answer[index]
      if (view) return { ...view, partition: member.name }
    }
    return silent.length === 0 ? null : undefined
  })
}

async function list(members: readonly Member[], request: ListRequest): Promise<JobPage> {
  const places = decodePlaces(request.after)
  const open = members.filter(({ name }) => places[name] !== null)
  const { after: _, ...wanted } = request
  const { heard, silent } = await readAll(open, ({ inspect }, { name }) => {
    const after = places[name]
    return inspect!.list({ ...wanted, ...(after ? { after } : {}) })
  })
  const parts = heard.map(({ member, answer: { jobs, cursors, next } }) => ({
    name: member.name,
    items: jobs,
    cursors,
    next,
  }))
  const page = merged(parts, request.limit, ORDERS[request.state])
  const so = { ...places }
  const cursors = page.items.map(({ name, cursor }) => {
    so[name] = cursor
    return encodePlaces(so)
  })
  const ends = { ...places, ...page.places }
  // Else whoever reads page by page would come round to it for ever.
  for (const { member } of silent) ends[member.name] = null
  return {
    jobs: page.items.map(({ name, item }) => ({ ...item, partition: name })),
    cursors,
    next: nextOf(
      ends,
      members.map(({ name }) => name),
    ),
    ...(silent.length === 0 ? {} : { missing: silent.map(({ member }) => member.name) }),
  }
}

/** What operators set on a queue. */
type QueueSettings = Omit<QueueView, 'queue' | 'partitions'>

type Before = (a: JobView, b: JobView) => boolean

const nextDue: Before = (a, b) => a.dueAt! < b.dueAt! || (a.dueAt === b.dueAt && a.id < b.id)
const newestEnd: Before = (a, b) => a.endedAt! > b.endedAt! || (a.endedAt === b.endedAt && a.id > b.id)
const nextToRun: Before = (a, b) =>
  a.queue === b.queue ? a.priority > b.priority || (a.priority === b.priority && nextDue(a, b)) : a.queue < b.queue
const startedFirst: Before = (a, b) => (a.startedAt ?? a.enqueuedAt) < (b.startedAt ?? b.enqueuedAt)

const ORDERS: Record<ListRequest['state'], Before> = {
  ready: nextToRun,
  delayed: nextDue,
  retrying: nextDue,
  blocked: nextDue,
  running: startedFirst,
  completed: newestEnd,
  cancelled: newestEnd,
  dead: newestEnd,
}

/** One store after the other: each page is of one of them, by its clock. Those that have nothing are passed by. */
async function match(members: readonly Member[], request: MatchRequest): Promise<MatchPage> {
  const places = decodePlaces(request.after)
  const names = members.map(({ name }) => name)
  const { after: _, ...wanted } = request
  for (;;) {
    const member = members.find(({ name }) => places[name] !== null)
    if (member === undefined) throw new QueueError('INVALID_OPTION', 'after: there is no next page', { field: 'after' })
    const after = places[member.name]
    const page = await member.read(({ inspect }) => inspect!.match({ ...wanted, ...(after ? { after } : {}) }))
    places[member.name] = page.next
    const next = nextOf(places, names)
    if (page.jobs.length > 0 || page.next !== null || next === null) return { ...page, next }
  }
}

async function deadGroups(
  members: readonly Member[],
  request: { queue?: string; kind?: string; limit: number },
): Promise<DeadGroups> {
  const { heard, silent } = await readAll(members, ({ inspect }) => inspect!.deadGroups(request))
  const groups = new Map<string, DeadGroup>()
  for (const { answer } of heard)
    for (const group of answer.groups) {
      const key = JSON.stringify([group.queue, group.kind, group.reason, group.fingerprint])
      const known = groups.get(key)
      groups.set(key, known === undefined ? group : together(known, group))
    }
  const all = [...groups.values()].sort((a, b) => b.newestAt - a.newestAt)
  const whole = silent.length === 0 && heard.every(({ answer }) => answer.complete)
  return {
    // Another store may have more of a group than it told of.
    groups: all
      .slice(0, request.limit)
      .map((group) => (whole ? group : { ...group, count: { ...group.count, exact: false } })),
    complete: whole && all.length <= request.limit,
  }
}

function together(one: DeadGroup, other: DeadGroup): DeadGroup {
  const newest = one.newestAt >= other.newestAt ? one : other
  return {
    ...newest,
    count: summed([one.count, other.count]),
    oldestAt: Math.min(one.oldestAt, other.oldestAt),
  }
}

export function summed(counts: readonly Count[], whole = true): Count {
  return {
    count: counts.reduce((sum, { count }) => sum + count, 0),
    exact: whole && counts.every(({ exact }) => exact),
  }
}

async function counts(members: readonly Member[], queue: string): Promise<QueueCounts> {
  const { heard, silent } = await readAll(members, ({ inspect }) => inspect!.counts(queue))
  const of = (state: (typeof JOB_STATES)[number]): Count =>
    summed(
      heard.map(({ answer }) => answer[state]),
      silent.length === 0,
    )
  return Object.fromEntries(JOB_STATES.map((state) => [state, of(state)])) as QueueCounts
}

/** What one says holds for all where those that know the queue agree; else each is told. */
function queuesOf(heard: readonly Heard<QueueView[]>[]): QueueView[] {
  const known = new Map<string, [string, QueueSettings][]>()
  for (const { member, answer } of heard)
    for (const { queue, partitions: _, ...settings } of answer)
      known.set(queue, [...(known.get(queue) ?? []), [member.name, settings]])
  return [...known].map(([queue, each]) => {
    const settings = each.map(([, one]) => one)
    const differ = new Set(settings.map((one) => JSON.stringify(one))).size > 1
    return {
      ...settings[0]!,
      queue,
      paused: settings.every(({ paused }) => paused),
      draining: settings.every(({ draining }) => draining),
      ...(differ ? { partitions: Object.fromEntries(each) } : {}),
    }
  })
}

function capacityOf(heard: Answers<CapacityFacts>['heard']): CapacityFacts {
  const all = heard.map(({ answer }) => answer)
  const sum = (of: (one: CapacityFacts) => number): number => all.reduce((total, one) => total + of(one), 0)
  const drained = sum(({ drained: { count } }) => count)
  const ran = all.filter(({ ranMs }) => ranMs !== null)
  const weight = (one: CapacityFacts): number => Math.max(1, one.drained.count)
  return {
    workers: sum(({ workers }) => workers),
    slots: sum(({ slots }) => slots),
    busy: sum(({ busy }) => busy),
    paused: all.every(({ paused }) => paused),
    ready: summed(all.map(({ ready }) => ready)),
    depth: summed(all.map(({ depth }) => depth)),
    drained: pacesTogether(all, drained),
    ranMs:
      ran.length === 0
        ? null
        : ran.reduce((total, one) => total + one.ranMs! * weight(one), 0) /
          ran.reduce((total, one) => total + weight(one), 0),
    limits: limitsTogether(all.map(({ limits }) => limits)),
  }
}

/** Paces add up, spans do not: counted over the longest span. */
function pacesTogether(all: readonly CapacityFacts[], count: number): CapacityFacts['drained'] {
  if (count === 0) return { count: 0, sinceMs: 0 }
  const sinceMs = Math.min(DRAINED_MS, Math.max(...all.map(({ drained }) => drained.sinceMs)))
  const scaled = all.map(({ drained }) => drained.count * (sinceMs / Math.max(1, drained.sinceMs)))
  return { count: Math.round(scaled.reduce((sum, one) => sum + one, 0)), sinceMs }
}

/**
 * A limit holds in each store, so all of them have as much together; none where one has none. Those of single tenants and keys
 * are those of one store.
 */
function limitsTogether(all: readonly QueueLimits[]): QueueLimits {
  const depth = sumOf(all.map(({ depth: one }) => one?.limit ?? null))
  return {
    concurrency: sumOf(all.map(({ concurrency }) => concurrency)),
    rate: rateTogether(all.map(({ rate }) => rate)),
    depth: depth === null ? null : { limit: depth, perTenant: all[0]?.depth?.perTenant ?? null, kinds: {} },
    intake: rateTogether(all.map(({ intake }) => intake)),
    perKey: all[0]?.perKey ?? null,
  }
}

function sumOf(numbers: readonly (number | null)[]): number | null {
  return numbers.reduce((total, one) => (total === null || one === null ? null : total + one), 0)
}

function rateTogether(rates: readonly QueueLimits['rate'][]): QueueLimits['rate'] {
  const perMs = rates[0]?.perMs ?? 1
  const limit = sumOf(rates.map((rate) => rate && (rate.limit / rate.perMs) * perMs))
  return limit === null ? null : { limit, perMs, burst: sumOf(rates.map((rate) => rate?.burst ?? null))! }
}
