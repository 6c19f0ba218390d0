/** How the receiver takes a request: how long it needs, and what goes wrong. Pure, by seed. Called by receiver.ts. */
import { chance } from '../../core/chance.js'

export interface Behaviour {
  /** Until the effect is applied, and once more until the answer. */
  latencyMs: number
  fault: Fault
}

/**
 * `refuse`: a 500 before any effect. `forget`: a 500 although the effect was applied. `late`: the effect is applied
 * and the answer comes after everybody has stopped waiting. All of them happen to real receivers.
 */
export type Fault = 'none' | 'refuse' | 'forget' | 'late'

/** Longer than the timeout of a delivery. */
export const LATE_MS = 4_500

/** The `nth` request for a key, from 1. A live endpoint is well by the third at the latest. */
export function behaviourOf(seed: number, key: string, nth: number): Behaviour {
  const draw = (word: string): number => chance(seed, key, nth, word)
  return { latencyMs: latencyMs(draw('slow'), draw('latency')), fault: faultOf(draw('fault'), nth) }
}

function latencyMs(slow: number, fraction: number): number {
  // One in twenty is slow: up to a second and a half there and back.
  return Math.round(slow < 0.05 ? 100 + 650 * fraction : 3 + 17 * fraction)
}

function faultOf(fraction: number, nth: number): Fault {
  if (nth >= 3) return 'none'
  if (fraction < 0.05) return 'refuse'
  if (fraction < 0.07) return 'forget'
  return fraction < 0.08 && nth === 1 ? 'late' : 'none'
}
