/**
 * Who waited in a queue while claims took others: the evidence for the rules of order, without all that those are not exact
 * about (see order-rules.ts). Pure; called by the rules of order, once for a history.
 */
import type { QueueOrder } from '../../core/priority.js'
import type { ClaimCall, ClaimFacts, Hold, Scene, Story, Trace } from './story.js'

/** A job that a claim took, and where the order puts it. */
export interface Taken {
  id: string
  priority: number
  /** By the store's clock. */
  dueAt: number
  /** Whose it is; undefined where nobody shares, or where that is not known. */
  tenant: string | undefined
}

/** One that waited while the claims `from` to `to - 1` of the contest took others. */
export interface Entrant extends Taken {
  kind: string
  from: number
  to: number
  /** The call that took it. */
  call: ClaimCall
}

/** A claim that ran beside no other. */
export interface LonelyClaim {
  worker: string
  askedAt: number
  kinds: ReadonlySet<string>
  /** Jobs at their first claim. */
  taken: Taken[]
  /** All that its worker had taken of the queue before it, and after it. */
  turns: { from: number; to: number }
}

export interface Contest {
  queue: string
  order: QueueOrder
  /** Its jobs are of tenants, which take turns. */
  shared: boolean
  /** In the order of time. */
  claims: LonelyClaim[]
  /** All, or of very many an even part. */
  entrants: Entrant[]
}

/** A commit later than this after its position was drawn may be found late. */
const LATE_COMMIT_MS = 100

const known = new WeakMap<Scene, Contest[]>()

export function contestsOf(scene: Scene, stories: readonly Story[]): Contest[] {
  const contests = known.get(scene)
  if (contests !== undefined) return contests
  const made = new Evidence(scene, stories).contests()
  known.set(scene, made)
  return made
}

/** A job at its first claim, of which nothing else is known. */
interface FirstClaim extends Taken {
  kind: string
  queue: string
  call: ClaimCall
  /** From when on it surely waited; Infinity where that is not known, then it only counts as one that was taken. */
  sinceAt: number
}

class Evidence {
  /** Queues that some jobs share as tenants. */
  private readonly shared = new Set<string>()
  private readonly lonely: ReadonlySet<ClaimCall>
  /** Claims without an answer, and repeated ones: from when until when they may have had jobs in their hands. */
  private readonly open: readonly { from: number; to: number }[]

  constructor(
    private readonly scene: Scene,
    private readonly stories: readonly Story[],
  ) {
    for (const { expected } of stories)
      if (expected?.tenant !== undefined && expected.queue !== undefined) this.shared.add(expected.queue)
    this.lonely = lonelyOf(scene)
    // A repeat that comes after the answer takes what nobody hears of, if there was nothing to take before.
    this.open = scene.calls
      .filter(({ answeredAt, sendings }) => answeredAt === undefined || sendings > 1)
      .map(({ askedAt, worker, forgottenAt }) => ({
        from: askedAt,
        to: forgottenAt ?? scene.ends.get(worker) ?? Number.POSITIVE_INFINITY,
      }))
  }

  contests(): Contest[] {
    if (this.scene.clocks === 'apart' || this.scene.calls.length === 0) return []
    const byQueue = new Map<string, FirstClaim[]>()
    for (const story of this.stories)
      for (const trace of story.traces) {
        const first = this.firstClaim(story, trace)
        if (first === undefined) continue
        const list = byQueue.get(first.queue)
        if (list === undefined) byQueue.set(first.queue, [first])
        else list.push(first)
      }
    const turns = this.turns()
    return [...byQueue].flatMap(([queue, firsts]) => this.contest(queue, firsts, turns.get(queue)!))
  }

  /** Undefined where nothing is known of the order in which it stands, or it may have come to the front. */
  private firstClaim(story: Story, trace: Trace): FirstClaim | undefined {
    const { id, holds, crashes, records, asks } = trace
    const [hold] = holds
    const facts = hold?.claimed
    if (facts?.call?.answeredAt === undefined || facts.alone || asks.length > 0 || hold!.crash !== undefined)
      return undefined
    if (crashes.length > 0 || (records[0]?.crashes ?? 0) > 0) return undefined
    if (facts.call.sendings > 1) return undefined
    const place = placeOf(facts)
    if (place === undefined || this.isUnsure(story.sentAt, facts.call)) return undefined
    const { tenant } = story.expected ?? {}
    return { id, ...place, tenant, queue: facts.queue, call: facts.call, sinceAt: sinceAt(story, trace, hold!) }
  }

  /** Somebody may have had it before, and nobody was told. */
  private isUnsure(sentAt: number | undefined, { askedAt, answeredAt }: ClaimCall): boolean {
    if (this.open.length === 0) return false
    const [from, to] = [sentAt ?? Number.NEGATIVE_INFINITY, answeredAt ?? askedAt]
    return this.open.some((one) => one.from <= to && one.to >= from)
  }

  /** Of each queue, the calls that brought jobs of it. */
  private turns(): Map<string, Map<ClaimCall, Turns>> {
    const byQueue = new Map<string, Map<ClaimCall, Turns>>()
    for (const { holds } of this.scene.traces.values())
      for (const { claimed } of holds) {
        if (claimed?.call === undefined) continue
        const ofQueue = byQueue.get(claimed.queue) ?? new Map<ClaimCall, Turns>()
        byQueue.set(claimed.queue, ofQueue)
        const turns = ofQueue.get(claimed.call)
        if (turns === undefined) ofQueue.set(claimed.call, { from: 0, to: 1 })
        else turns.to += 1
      }
    for (const ofQueue of byQueue.values()) countOn(ofQueue)
    return byQueue
  }

  private contest(queue: string, firsts: readonly FirstClaim[], turns: Map<ClaimCall, Turns>): Contest[] {
    const order = orderOf(queue, this.scene)
    if (order === undefined) return []
    const calls = [...turns.keys()]
      .filter((call) => this.lonely.has(call) && this.scene.kinds.has(call.worker))
      .sort((a, b) => a.askedAt - b.askedAt)
    const claims = calls.map((call) => ({
      worker: call.worker,
      askedAt: call.askedAt,
      kinds: this.scene.kinds.get(call.worker)!,
      taken: [] as Taken[],
      turns: turns.get(call)!,
    }))
    const place = new Map(calls.map((call, i) => [call, i]))
    const entrants: Entrant[] = []
    for (const first of firsts) {
      const { id, priority, dueAt, tenant, kind, call, sinceAt } = first
      const own = place.get(call)
      if (own !== undefined) claims[own]!.taken.push({ id, priority, dueAt, tenant })
      const [from, to] = [firstAfter(calls, sinceAt), firstAfter(calls, call.askedAt)]
      if (couldHaveIt(kind, claims, from, to)) entrants.push({ id, priority, dueAt, tenant, kind, from, to, call })
    }
    return [{ queue, order, shared: this.shared.has(queue), claims, entrants: sampled(entrants) }]
  }
}

type Turns = LonelyClaim['turns']

/** Each worker counts what it takes of a queue. */
function countOn(calls: Map<ClaimCall, Turns>): void {
  const sofar = new Map<string, number>()
  for (const [{ worker }, turns] of [...calls].sort(([a], [b]) => a.askedAt - b.askedAt)) {
    turns.from = sofar.get(worker) ?? 0
    turns.to += turns.from
    sofar.set(worker, turns.to)
  }
}

/** Of a large backlog a part tells as much, and whoever waits long is compared with all that went first. */
const ENTRANTS_MAX = 20_000

function sampled(entrants: readonly Entrant[]): Entrant[] {
  const step = Math.ceil(entrants.length / ENTRANTS_MAX)
  return entrants.filter((_, i) => i % step === 0)
}

/** Any of these claims. */
function couldHaveIt(kind: string, claims: readonly LonelyClaim[], from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (claims[i]!.kinds.has(kind)) return true
  return false
}

/** The index of the first call that was sent at this instant or later. */
function firstAfter(calls: readonly ClaimCall[], at: number): number {
  let [low, high] = [0, calls.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (calls[middle]!.askedAt < at) low = middle + 1
    else high = middle
  }
  return low
}

function placeOf({
  claimedAt,
  waitedMs,
  priority,
  kind,
}: ClaimFacts): (Omit<Taken, 'id' | 'tenant'> & { kind: string }) | undefined {
  if (claimedAt === undefined || waitedMs === undefined || priority === undefined || kind === undefined)
    return undefined
  return { dueAt: claimedAt - waitedMs, priority, kind }
}

/** A claim that is sent from then on sees it. */
function sinceAt({ expected, told, sentAt }: Story, { id }: Trace, { attempt }: Hold): number {
  const created = told.find((one) => one.outcome === 'created' && one.id === id)
  if (created === undefined || created.transaction !== undefined || told.length > 1) return Number.POSITIVE_INFINITY
  if (expected?.delayMs !== 0 || attempt !== 1) return Number.POSITIVE_INFINITY
  const late = sentAt === undefined || created.at - sentAt > LATE_COMMIT_MS
  return late ? Number.POSITIVE_INFINITY : created.at
}

/** Undefined where somebody changes it. */
function orderOf(queue: string, { orders, queueAsks }: Scene): QueueOrder | undefined {
  if (queueAsks.some((ask) => ask.operation === 'order' && ask.queue === queue)) return undefined
  return orders[queue] ?? 'ageing'
}

/** Those that were over before the next one was sent, and were sent after all before were over. */
function lonelyOf({ calls, ends }: Scene): Set<ClaimCall> {
  const lonely = new Set<ClaimCall>()
  let until = Number.NEGATIVE_INFINITY
  for (const [i, call] of calls.entries()) {
    // Without an answer it may be done as long as the store knows its worker.
    const overAt = call.answeredAt ?? ends.get(call.worker) ?? Number.POSITIVE_INFINITY
    const next = calls[i + 1]?.askedAt ?? Number.POSITIVE_INFINITY
    // Of one that was sent again nobody knows which sending took the jobs.
    const isPlain = call.answeredAt !== undefined && call.sendings === 1
    if (isPlain && call.askedAt > until && overAt < next) lonely.add(call)
    until = Math.max(until, overAt)
  }
  return lonely
}
