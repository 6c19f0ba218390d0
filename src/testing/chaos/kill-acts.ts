/** The kills of a run, by seed: whom they meet, and when. Endless. Called by the table of forms. */
import { chance } from '../../core/chance.js'
import { type Cast, CUTS, type CutOperation, type Kill, type Moment } from './acts.js'
import { indexOf } from './draw.js'
import { within } from './plan.js'

/** A worker needs a lease of steady beats before it may judge others, so kills must let some of them live that long. */
const KILL_EVERY_MS = 4_000
const FIRST_ACT_MS = 6_000

export function* killActs(seed: number, { workers, producers }: Cast): Generator<Kill, void> {
  let atMs = FIRST_ACT_MS
  for (let i = 0; ; i++) {
    const draw = (word: string): number => chance(seed, 'act', i, word)
    const flood = draw('flood') < 0.4
    if (draw('whom') < 0.06)
      yield { atMs: Math.round(atMs), flood, act: 'kill producer', producer: indexOf(draw('producer'), producers) }
    else {
      const seats = seatsOf(draw('how many'), draw('seat'), workers)
      yield { atMs: Math.round(atMs), flood, act: 'kill worker', seats, moment: momentOf(draw) }
    }
    // Exponential, as accidents are: some come close upon each other.
    atMs += Math.min(4 * KILL_EVERY_MS, -Math.log(1 - draw('pause')) * KILL_EVERY_MS)
  }
}

/** The first seats are hit less often than the last ones, as some workers have to live for minutes and others for seconds. */
const SEAT_SKEW = 0.6

/** Mostly one; now and then two, three or all of them at once. */
function seatsOf(howMany: number, first: number, workers: number): number[] {
  const wanted = howMany < 0.8 ? 1 : howMany < 0.92 ? 2 : howMany < 0.97 ? 3 : workers
  const from = indexOf(first ** SEAT_SKEW, workers)
  return Array.from({ length: Math.min(wanted, workers) }, (_, i) => (from + i) % workers)
}

function momentOf(draw: (word: string) => number): Moment {
  const kind = draw('moment')
  if (kind < 0.3) return { at: 'any' }
  if (kind < 0.45) return { at: 'start', afterMs: within(draw('after'), 0, 900) }
  if (kind < 0.6) return { at: 'stop', afterMs: within(draw('after'), 0, 1_500) }
  const operation = OPERATIONS_BY_CHANCE[indexOf(draw('operation'), OPERATIONS_BY_CHANCE.length)]!
  return { at: 'call', operation, cut: CUTS[indexOf(draw('cut'), CUTS.length)]! }
}

const OPERATIONS_BY_CHANCE: readonly CutOperation[] = ['claim', 'claim', 'settle', 'settle', 'takeOver', 'promote']
