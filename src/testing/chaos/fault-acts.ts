/** The faults of a run, by seed: one after the other, each with an end. Endless. Called by the table of forms. */
import { chance } from '../../core/chance.js'
import { type Cast, CUT_WAYS, type CutWay, type Fault, POOLER_WAYS, RESTART_WAYS, type Whom } from './acts.js'
import { oneOf } from './draw.js'
import { within } from './plan.js'

/** A number for each word, the same for the same fault of the same seed. */
type Draw = (word: string) => number

const FIRST_FAULT_MS = 6_000
/** Between two faults at least: room for the rate before the next one to be seen. */
const CALM_MS_MIN = 10_000
/** And at most: within it whoever does not consume any more is surely found. */
const CALM_MS_MAX = 30_000

function* faults(seed: number, drawn: (draw: Draw, i: number) => Unplaced): Generator<Fault, void> {
  let atMs = FIRST_FAULT_MS
  for (let i = 0; ; i++) {
    const draw: Draw = (word) => chance(seed, 'fault', i, word)
    const fault = { ...drawn(draw, i), atMs, flood: draw('flood') < 0.5 }
    yield fault
    atMs += fault.ms + within(draw('calm'), CALM_MS_MIN, CALM_MS_MAX)
  }
}

type Unplaced = Fault extends infer One ? (One extends unknown ? Omit<One, 'atMs' | 'flood'> : never) : never

/** Shorter than two beats, between that and a lease, or longer than a lease: each is another matter to the store. */
const SPELLS_MS = [
  [500, 3_000],
  [4_000, 8_000],
  [11_500, 16_000],
] as const

function spellMs(draw: Draw, shares: readonly [number, number]): number {
  const length = draw('length')
  const [min, max] = SPELLS_MS[length < shares[0] ? 0 : length < shares[1] ? 1 : 2]!
  return within(draw('ms'), min, max)
}

/** One worker mostly, often several, now and then all; producers seldom. */
function whomOf(draw: Draw, { workers, producers }: Cast): Whom {
  const kind = draw('whom')
  if (kind < 0.1) return { workers: [], producers: some(draw('first'), 1, producers) }
  if (kind < 0.6) return { workers: some(draw('first'), 1, workers), producers: [] }
  if (kind < 0.8) return { workers: some(draw('first'), 2, workers), producers: some(draw('producer'), 1, producers) }
  return everybody({ workers, producers })
}

function some(first: number, count: number, of: number): number[] {
  return Array.from({ length: Math.min(count, of) }, (_, i) => (Math.floor(first * of) + i) % of)
}

function everybody({ workers, producers }: Cast): Whom {
  return { workers: some(0, workers, workers), producers: some(0, producers, producers) }
}

/** The first one is past the lease, whatever the seed: it is what the form is for. */
export function freezeActs(seed: number, cast: Cast): Generator<Fault, void> {
  return faults(seed, (draw, i) => ({
    act: 'freeze',
    whom: i === 0 ? { workers: some(draw('first'), 1, cast.workers), producers: [] } : whomOf(draw, cast),
    ms: spellMs(draw, i === 0 ? [0, 0] : [0.15, 0.3]),
  }))
}

const DELAY_MS = [50, 400] as const

export function cutActs(seed: number, cast: Cast): Generator<Fault, void> {
  // A round of all ways, each time in another order.
  return faults(seed, (draw, i) => {
    const round = Math.floor(i / CUT_WAYS.length)
    const way = shuffled(CUT_WAYS, (word) => chance(seed, 'round', round, word))[i % CUT_WAYS.length]!
    const delayMs = way === 'delay' ? within(draw('delay'), ...DELAY_MS) : 0
    return { act: 'cut', way, whom: whomOf(draw, cast), delayMs, ms: spellMs(draw, sharesOf(way)) }
  })
}

/** What nobody is told of is worth more time than what everybody notices at once. */
function sharesOf(way: CutWay): readonly [number, number] {
  return way === 'close' ? [0.7, 1] : [0.25, 0.5]
}

function shuffled<Item extends string>(items: readonly Item[], draw: Draw): Item[] {
  return [...items].sort((a, b) => draw(a) - draw(b))
}

/** How long the server is away beside what it needs to start; one that recovers by itself decides that itself. */
export function restartActs(seed: number): Generator<Fault, void> {
  return faults(seed, (draw, i) => {
    const round = Math.floor(i / RESTART_WAYS.length)
    const way = shuffled(RESTART_WAYS, (word) => chance(seed, 'round', round, word))[i % RESTART_WAYS.length]!
    return { act: 'restart', way, ms: way === 'crash' || way === 'sessions' ? 0 : spellMs(draw, [0.6, 0.8]) }
  })
}

export function readOnlyActs(seed: number): Generator<Fault, void> {
  return faults(seed, (draw) => ({
    act: 'read-only',
    sessions: draw('sessions') < 0.5 ? 'stay' : 'end',
    back: draw('back') < 0.6 ? 'all' : 'new',
    ms: spellMs(draw, [0.3, 0.55]),
  }))
}

const SKEW_MS_MAX = 600_000

/** Up to ten minutes, both ways. */
export function skewActs(seed: number, cast: Cast): Generator<Fault, void> {
  return faults(seed, (draw) => ({ act: 'skew', whom: whomOf(draw, cast), offsetMs: skewMs(draw('offset')), ms: 0 }))
}

/** What the clock of a process is off by from its start on. */
export function firstSkewMs(seed: number, process: string): number {
  return skewMs(chance(seed, 'clock', process))
}

function skewMs(fraction: number): number {
  return within(fraction, -SKEW_MS_MAX, SKEW_MS_MAX)
}

export function poolerActs(seed: number): Generator<Fault, void> {
  return faults(seed, (draw) => {
    const way = oneOf(POOLER_WAYS, draw('way'))
    return { act: 'pooler', way, ms: way === 'servers' ? 0 : spellMs(draw, [0.5, 0.75]) }
  })
}
