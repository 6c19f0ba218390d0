/**
 * What was done to a system, and how its throughput went around it: the faults with their begin and end, and how soon work
 * came back after each. Pure; folded beside the stories, read by the rules of the scene and by the verdict.
 */
import type { HistoryEvent } from './history.js'

/** One fault. `overAt` is missing when it did not end. */
export interface FaultSpan {
  fault: number
  kind: string
  /** The processes that it met. */
  touches: readonly string[]
  /** While it lasted no beat of any worker reached the store. */
  outage: boolean
  begunAt: number
  liftingAt?: number
  overAt?: number
}

/** How soon after a fault as much was done as before it. */
export interface Return {
  fault: number
  kind: string
  /** Runs ended in a second, before it. */
  before: number
  /** From its end on, until so much was done again; at least this, if it was not back in time. */
  ms: number
  /** `unknown`: nothing was measured before it, or the time after it was too short or too mixed. */
  is: 'back' | 'late' | 'unknown'
}

/** Throughput has to be back after this. */
export const BACK_MS_MAX = 15_000
const BACK_PART = 0.8
/** As short as chance allows: some hundred jobs end within it. */
const WINDOW_MS = 2_000
const STEP_MS = 100
/** Before a fault so much is looked at, at most. */
const BEFORE_MS_MAX = 3_500
/** A change of pace is felt once the slow jobs that were running have ended. */
const SETTLE_MS = 500

interface Span {
  from: number
  to: number
}

interface Stretch extends Span {
  pace: string
}

interface Life {
  role: 'worker' | 'producer'
  spawnedAt: number
  goneAt: number
}

/** Gathers events of any order; what it answers is right once all are in. */
export class Disturbances {
  private readonly byNumber = new Map<number, FaultSpan>()
  private readonly paces: { at: number; is: string }[] = []
  private readonly waiting: { at: number; jobs: number }[] = []
  private readonly ends: number[] = []
  private readonly settled = new Map<string, number[]>()
  private readonly lives = new Map<string, Life>()
  private sorted = true

  add(process: string, event: HistoryEvent): void {
    switch (event.what) {
      case 'effect':
      case 'finished':
        this.ends.push(event.at)
        this.sorted = false
        return
      case 'settled':
        if (event.as !== 'lost') listOf(this.settled, process).push(event.at)
        return
      case 'fault':
        this.addFault(event)
        return
      case 'pace':
        this.paces.push({ at: event.at, is: event.is })
        return
      case 'waiting':
        this.waiting.push({ at: event.at, jobs: event.jobs })
        return
      case 'spawned':
        this.lives.set(event.process, { role: event.role, spawnedAt: event.at, goneAt: Number.POSITIVE_INFINITY })
        return
      case 'gone': {
        const life = this.lives.get(event.process)
        if (life !== undefined) life.goneAt = event.at
        return
      }
      default:
    }
  }

  /** In the order of their begin. */
  get spans(): FaultSpan[] {
    return [...this.byNumber.values()].sort((a, b) => a.begunAt - b.begunAt)
  }

  /** One for each fault that ended. */
  returns(): Return[] {
    if (!this.sorted) this.ends.sort((a, b) => a - b)
    this.sorted = true
    const stretches = this.stretches()
    const { spans } = this
    const found: Return[] = []
    /** Until then the last fault was felt: no measure of what is usual. */
    const felt: Span[] = []
    for (const [i, span] of spans.entries()) {
      if (span.overAt === undefined) continue
      const before = this.ratesBefore(stretches, span.begunAt, felt)
      const next = spans.slice(i + 1).find((one) => one.begunAt >= span.overAt!)
      const back = this.back(span, before, stretches, next?.begunAt ?? Number.POSITIVE_INFINITY)
      found.push(back)
      felt.push({ from: span.begunAt, to: span.overAt + (back.is === 'back' ? back.ms : BACK_MS_MAX) })
    }
    return found
  }

  /** Workers that were up for so long after a fault and were met by no other one, while work waited all that time. */
  lookedAt(ms: number): { process: string; span: FaultSpan }[] {
    return this.spans.flatMap((span) => {
      const { overAt } = span
      if (overAt === undefined || !this.workWaited(overAt, overAt + ms)) return []
      const up = this.livingWorkers(overAt, overAt + ms).filter(
        (process) => !this.isMetElse(process, span, overAt + ms),
      )
      return up.map((process) => ({ process, span }))
    })
  }

  /** Those among them that settled nothing in it. */
  idlers(ms: number): { process: string; span: FaultSpan }[] {
    return this.lookedAt(ms).filter(
      ({ process, span: { overAt = 0 } }) => !this.hasSettled(process, overAt, overAt + ms),
    )
  }

  private addFault(event: HistoryEvent & { what: 'fault' }): void {
    const { at, fault } = event
    if (event.is === 'begun') {
      const { kind, touches, outage } = event
      this.byNumber.set(fault, { fault, kind, touches, outage, begunAt: at })
      return
    }
    const span = this.byNumber.get(fault)
    if (span === undefined) throw new Error(`fault ${fault} ends and never began`)
    if (event.is === 'lifting') span.liftingAt = at
    else span.overAt = at
  }

  private stretches(): Stretch[] {
    const paces = [...this.paces].sort((a, b) => a.at - b.at)
    return paces.map(({ at, is }, i) => ({
      pace: is,
      from: at + SETTLE_MS,
      to: paces[i + 1]?.at ?? this.ends.at(-1) ?? at,
    }))
  }

  /** Of each pace, what was usual last before this instant; what any fault was felt in does not count. */
  private ratesBefore(stretches: readonly Stretch[], at: number, felt: readonly Span[]): Map<string, number> {
    const rates = new Map<string, number>()
    for (const { pace, from, to } of stretches)
      for (const calm of without({ from, to: Math.min(to, at) }, felt)) {
        if (calm.to - calm.from < WINDOW_MS) continue
        rates.set(pace, this.rate(Math.max(calm.from, calm.to - BEFORE_MS_MAX), calm.to))
      }
    return rates
  }

  private back(
    { fault, kind, overAt = 0 }: FaultSpan,
    before: Map<string, number>,
    stretches: readonly Stretch[],
    next: number,
  ): Return {
    let lastSeen = 0
    let rateBefore = 0
    for (let ms = 0; ms <= BACK_MS_MAX; ms += STEP_MS) {
      const [from, to] = [overAt + ms, overAt + ms + WINDOW_MS]
      const stretch = stretches.find((one) => one.from - SETTLE_MS <= from && one.to >= to)
      const usual = stretch && before.get(stretch.pace)
      if (usual === undefined || usual === 0 || to > next) continue
      lastSeen = ms
      rateBefore = usual
      if (this.rate(from, to) >= usual * BACK_PART) return { fault, kind, before: usual, ms, is: 'back' }
    }
    // Where the work itself had come to its end nothing could come back.
    const needed = Math.max(WAITING_MIN, (rateBefore * WINDOW_MS) / 1_000)
    const isLate = lastSeen > BACK_MS_MAX - 2 * STEP_MS && this.workWaited(overAt, overAt + BACK_MS_MAX, needed)
    return { fault, kind, before: rateBefore, ms: lastSeen, is: isLate ? 'late' : 'unknown' }
  }

  /** Runs that ended in a second. */
  private rate(from: number, to: number): number {
    return ((firstFrom(this.ends, to) - firstFrom(this.ends, from)) / (to - from)) * 1_000
  }

  private workWaited(from: number, to: number, jobsMin = WAITING_MIN): boolean {
    const looks = this.waiting.filter(({ at }) => at >= from && at <= to)
    return looks.length >= LOOKS_MIN && looks.every(({ jobs }) => jobs >= jobsMin)
  }

  private livingWorkers(from: number, to: number): string[] {
    return [...this.lives].flatMap(([process, { role, spawnedAt, goneAt }]) =>
      role === 'worker' && spawnedAt <= from && goneAt > to ? [process] : [],
    )
  }

  private isMetElse(process: string, span: FaultSpan, until: number): boolean {
    return this.spans.some(
      (other) =>
        other !== span &&
        other.touches.includes(process) &&
        other.begunAt <= until &&
        (other.overAt ?? Number.POSITIVE_INFINITY) >= span.overAt!,
    )
  }

  private hasSettled(process: string, from: number, to: number): boolean {
    return this.settled.get(process)?.some((at) => at >= from && at <= to) ?? false
  }
}

/** Seldom counted, and not far above nothing, is no proof that work waited. */
const LOOKS_MIN = 5
const WAITING_MIN = 500

/** What is left of it, in order, outside of the others, which are in the order of their begin. */
function without(whole: Span, others: readonly Span[]): Span[] {
  const left: Span[] = []
  let from = whole.from
  for (const other of others) {
    if (other.from > from) left.push({ from, to: Math.min(other.from, whole.to) })
    from = Math.max(from, other.to)
  }
  if (from < whole.to) left.push({ from, to: whole.to })
  return left.filter((span) => span.to > span.from)
}

/** The index of the first instant from this one on, of instants in rising order. */
function firstFrom(instants: readonly number[], at: number): number {
  let [low, high] = [0, instants.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (instants[middle]! < at) low = middle + 1
    else high = middle
  }
  return low
}

function listOf(lists: Map<string, number[]>, key: string): number[] {
  const known = lists.get(key)
  if (known !== undefined) return known
  const made: number[] = []
  lists.set(key, made)
  return made
}
