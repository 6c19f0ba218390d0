/**
 * Makes of many logs one story for each job: who enqueued it and was told what, who held it, where it ran, how it was
 * settled, what the store has of it. One reducer for each event, in one table: a new event is a new row. Pure folding
 * in any order of processes; called by the checker.
 */
import type { Expectation } from './expectation.js'
import { Disturbances } from './faults.js'
import type { History, HistoryEvent, StoreRecord } from './history.js'
import { holdOf, holdOfSettlement, holdUnder } from './holds.js'
import {
  type ClaimCall,
  exists,
  type JobAsk,
  type ProcessLife,
  type QueueAsk,
  type Run,
  type Scene,
  type Stories,
  type Story,
  type Trace,
} from './story.js'

export function storiesOf(history: History): Stories {
  const fold = new Fold(history)
  for (const { process, event } of history.events) fold.add(process, event)
  for (const record of history.records ?? []) fold.addRecord(record)
  return fold.result()
}

type Event<What extends HistoryEvent['what']> = HistoryEvent & { what: What }
type Reducers = {
  readonly [What in HistoryEvent['what']]?: (fold: Fold, process: string, event: Event<What>) => void
}

const REDUCERS: Reducers = {
  // From producers.
  sending: (fold, _, { n, at }) => {
    const story = fold.story(n)
    story.sendings += 1
    if (story.sentAt === undefined || at < story.sentAt) story.sentAt = at
  },
  told: (fold, _, { n, at, outcome, id, transaction, code }) => {
    fold.story(n).told.push({ at, outcome, id, transaction, code })
    if (id !== undefined && (outcome === 'created' || outcome === 'unknown')) fold.trace(id).n ??= n
  },
  transaction: ({ scene }, _, { transaction, is }) => void scene.transactions.set(transaction, is),

  // From operators.
  asked: (fold, _, { ask, operation, id, at }) => {
    const asked: JobAsk = { operation, askedAt: at, answer: undefined, answeredAt: undefined }
    fold.trace(id).asks.push(asked)
    fold.asks.set(`${ask} ${id}`, asked)
  },
  answered: (fold, _, { ask, id, operation, answer, at }) => {
    const known = fold.asks.get(`${ask} ${id}`)
    if (known !== undefined) Object.assign(known, { answer, answeredAt: at })
    // Of a recorded log: when it was asked is not known.
    else fold.trace(id).asks.push({ operation, askedAt: Number.NEGATIVE_INFINITY, answer, answeredAt: at })
  },
  'asked of queue': (fold, _, { ask, operation, queue, order, at }) => {
    const asked: QueueAsk = { operation, queue, askedAt: at, answeredAt: undefined, deleted: undefined, order }
    fold.scene.queueAsks.push(asked)
    fold.queueAsks.set(ask, asked)
  },
  'answered of queue': (fold, _, { ask, operation, queue, deleted, at }) => {
    const known = fold.queueAsks.get(ask)
    if (known !== undefined) Object.assign(known, { answeredAt: at, deleted })
    else {
      const asked = { operation, queue, askedAt: Number.NEGATIVE_INFINITY, answeredAt: at, deleted, order: undefined }
      fold.scene.queueAsks.push(asked)
    }
  },
  expired: (fold, _, { id, at }) => {
    fold.trace(id).expiredAt ??= at
  },

  // From handlers.
  started: (fold, process, { n, id, attempt, fence, at }) => {
    const trace = fold.trace(id)
    trace.n ??= n
    fold.scene.has.starting.add(process)
    const hold = holdUnder(trace, process, fence)
    hold.startedAt ??= at
    hold.attempt ??= attempt
  },
  effect: (fold, process, { n, id, fence, at }) => {
    fold.scene.has.effects = true
    fold.started(process, { n, id, fence }).effectAt = at
  },
  finished: (fold, process, { n, id, fence, as, at }) => {
    Object.assign(fold.started(process, { n, id, fence }), { finishedAt: at, finishedAs: as })
  },

  // From workers.
  claiming: (fold, process, { worker, request, kinds, at }) => {
    fold.sent(fold.call(process, worker, request, at))
    if (kinds !== undefined) fold.scene.kinds.set(worker, new Set(kinds))
  },
  'claim answered': (fold, process, { worker, request, at }) => {
    fold.call(process, worker, request, at).answeredAt = at
  },
  claimed: (fold, process, event) => {
    const { id, worker, fence, queue, kind, priority, attempt, waitedMs, claimedAt, request, at, alone } = event
    fold.scene.has.claiming.add(process)
    fold.identity(worker, process)
    const call = request === undefined ? undefined : fold.calls.get(worker)?.get(request)
    call?.fences.push({ fence, at })
    const hold = holdUnder(fold.trace(id), process, fence)
    hold.attempt = attempt
    hold.claimed ??= { at, worker, queue, kind, priority, waitedMs, claimedAt, call, alone: alone === true }
  },
  settled: (fold, process, { id, worker, as, reason, againInMs, attempt, at }) => {
    if (worker !== '') fold.identity(worker, process)
    const trace = fold.trace(id)
    const settlement = { process, at, as, reason, againInMs }
    trace.settlements.push(settlement)
    holdOfSettlement(trace, settlement, { worker, attempt })?.told.push(settlement)
  },
  'crash noted': (fold, process, { id, deadWorker, started, alone, at }) => {
    const trace = fold.trace(id)
    const crash = { at, deadWorker, started, alone }
    trace.crashes.push(crash)
    trace.holds.push(holdOf(process, { crash }))
  },
  'took over': ({ scene }, process, { at, deadWorker, jobs }) => {
    scene.takeOvers.push({ process, at, deadWorker, jobs })
    endsAt(scene, deadWorker, at)
  },
  worker: (fold, process, { worker, is, confirmedAt, slots, kinds, at, ms = 0 }) => {
    const { scene } = fold
    fold.identity(worker, process)
    if (confirmedAt !== undefined) {
      found(scene.beats, worker, () => []).push(confirmedAt)
      fold.forgets(worker, confirmedAt, at)
    }
    if (kinds !== undefined) scene.kinds.set(worker, new Set(kinds))
    if (slots !== undefined) scene.slots.set(process, slots)
    if (is === 'stopped') endsAt(scene, worker, at)
    if (is === 'draining') scene.draining.set(worker, at)
    if (is === 'blocked') found(scene.blocks, process, () => []).push({ from: at - ms, to: at })
  },
  trouble: ({ scene }, process, { operation, at }) => {
    if (operation === 'beat') found(scene.failedBeats, process, () => []).push(at)
  },

  // From the driver.
  spawned: (fold, _, { process, role }) => {
    fold.life(process).role = role
  },
  killed: (fold, _, { process, at, moment }) => {
    fold.scene.kills.push({ process, at, moment })
    fold.life(process).killedAt = at
  },
  gone: (fold, _, { process, at, code, signal, errors = '' }) => {
    Object.assign(fold.life(process), { goneAt: at, end: { code, signal, errors } })
  },
  spared: ({ scene }) => {
    scene.spared += 1
  },
}

function endsAt({ ends }: Scene, worker: string, at: number): void {
  ends.set(worker, Math.min(ends.get(worker) ?? Number.POSITIVE_INFINITY, at))
}

class Fold {
  /** By worker and request. */
  readonly calls = new Map<string, Map<number, ClaimCall>>()
  /** By worker: calls that were sent more than once, and that no beat has named as answered since. */
  private readonly repeated = new Map<string, Set<ClaimCall>>()
  readonly asks = new Map<string, JobAsk>()
  readonly queueAsks = new Map<string, QueueAsk>()
  readonly scene: Scene
  private readonly byNumber = new Map<number, Story>()
  private readonly expect: (n: number) => Expectation | undefined

  constructor({ expect, records, leaseMs, ...facts }: History) {
    this.expect = expect ?? (() => undefined)
    this.scene = {
      leaseMs,
      clocks: facts.clocks ?? 'shared',
      covers: facts.covers ?? 'everything',
      retention: facts.retention ?? 'all kept',
      orders: facts.orders ?? {},
      limits: facts.limits ?? {},
      has: {
        expectations: expect !== undefined,
        records: records !== undefined,
        effects: false,
        claiming: new Set(),
        starting: new Set(),
      },
      traces: new Map(),
      transactions: new Map(),
      processes: new Map(),
      workers: new Map(),
      identities: new Map(),
      kinds: new Map(),
      ends: new Map(),
      draining: new Map(),
      slots: new Map(),
      beats: new Map(),
      failedBeats: new Map(),
      blocks: new Map(),
      takeOvers: [],
      calls: [],
      queueAsks: [],
      disturbances: new Disturbances(),
      kills: [],
      spared: 0,
    }
  }

  add(process: string, event: HistoryEvent): void {
    this.scene.disturbances.add(process, event)
    const reduce = REDUCERS[event.what] as ((fold: Fold, process: string, event: HistoryEvent) => void) | undefined
    reduce?.(this, process, event)
  }

  addRecord(record: StoreRecord): void {
    const trace = this.trace(record.id)
    trace.n = record.n
    trace.records.push(record)
  }

  result(): Stories {
    const { scene } = this
    for (const trace of scene.traces.values()) {
      arrange(trace)
      // A job that was settled and neither ran nor is in the store: its number is not known.
      if (trace.n !== undefined || exists(trace)) this.story(trace.n ?? -1).traces.push(trace)
    }
    // An answer may overtake that of an earlier beat.
    for (const beats of scene.beats.values()) beats.sort((a, b) => a - b)
    scene.takeOvers.sort((a, b) => a.at - b.at)
    scene.kills.sort((a, b) => a.at - b.at)
    scene.calls.sort((a, b) => a.askedAt - b.askedAt)
    scene.queueAsks.sort((a, b) => a.askedAt - b.askedAt)
    return { stories: [...this.byNumber.values()], scene }
  }

  story(n: number): Story {
    return found(this.byNumber, n, () => ({
      n,
      expected: this.expect(n),
      sentAt: undefined,
      sendings: 0,
      told: [],
      traces: [],
    }))
  }

  trace(id: string): Trace {
    const known = this.scene.traces.get(id)
    if (known !== undefined) return known
    const [holds, runs, settlements, crashes, asks, records] = [[], [], [], [], [], []]
    const trace = { id, n: undefined, holds, runs, settlements, crashes, asks, expiredAt: undefined, records }
    this.scene.traces.set(id, trace)
    return trace
  }

  started(process: string, { n, id, fence }: { n: number; id: string; fence: number }): Run {
    const trace = this.trace(id)
    trace.n ??= n
    const hold = trace.holds.findLast((one) => one.process === process && one.fence === fence)
    if (hold?.startedAt === undefined) throw new Error(`${process} logged an end of job ${id} and no start`)
    return hold as Run
  }

  call(process: string, worker: string, request: number, at: number): ClaimCall {
    let ofWorker = this.calls.get(worker)
    if (ofWorker === undefined) {
      this.identity(worker, process)
      ofWorker = new Map()
      this.calls.set(worker, ofWorker)
    }
    const known = ofWorker.get(request)
    if (known !== undefined) return known
    const call = {
      process,
      worker,
      askedAt: at,
      answeredAt: undefined,
      sendings: 0,
      forgottenAt: undefined,
      fences: [],
    }
    ofWorker.set(request, call)
    this.scene.calls.push(call)
    return call
  }

  /** Whoever asks again has not taken the answer, if there was one: it came when nobody waited for it any more. */
  sent(call: ClaimCall): void {
    call.sendings += 1
    call.answeredAt = undefined
    call.forgottenAt = undefined
    if (call.sendings > 1) found(this.repeated, call.worker, () => new Set<ClaimCall>()).add(call)
  }

  /** The beat names what was answered before its snapshot; when it is confirmed, no repeat of that can take anything. */
  forgets(worker: string, confirmedAt: number, at: number): void {
    const calls = this.repeated.get(worker)
    for (const call of calls ?? []) {
      if (call.answeredAt === undefined || call.answeredAt >= confirmedAt) continue
      call.forgottenAt = at
      calls!.delete(call)
    }
  }

  identity(worker: string, process: string): void {
    if (this.scene.workers.has(worker)) return
    this.scene.workers.set(worker, process)
    found(this.scene.identities, process, () => []).push(worker)
  }

  life(process: string): ProcessLife {
    return found(this.scene.processes, process, () => ({ role: 'worker' }))
  }
}

/** Processes may come in any order; what belongs to one job is told in the order of fences and of time. */
function arrange(trace: Trace): void {
  const { holds } = trace
  if (holds.length > 1)
    holds.sort(
      (a, b) =>
        (a.fence ?? Number.MAX_SAFE_INTEGER) - (b.fence ?? Number.MAX_SAFE_INTEGER) ||
        (a.crash?.at ?? 0) - (b.crash?.at ?? 0),
    )
  for (const hold of holds) if (hold.startedAt !== undefined) trace.runs.push(hold as Run)
  if (trace.runs.length > 1) trace.runs.sort((a, b) => a.startedAt - b.startedAt)
  if (trace.settlements.length > 1) trace.settlements.sort((a, b) => a.at - b.at)
  if (trace.crashes.length > 1) trace.crashes.sort((a, b) => a.at - b.at)
}

/** What the map has under the key, or what is made for it now. */
function found<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
