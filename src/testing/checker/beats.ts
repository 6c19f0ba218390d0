/** Until when a worker surely had its lease, by the beats that it had confirmed. Pure; called by the rules of runs and workers. */
import type { Hold, Scene } from './story.js'

/** Of the identity that held the job; where that is not known, of the only one that its process had. In rising order. */
export function beatsOf({ claimed, process }: Hold, { beats, identities }: Scene): readonly number[] {
  const own = identities.get(process) ?? []
  const worker = claimed?.worker ?? (own.length === 1 ? own[0] : undefined)
  return (worker !== undefined && beats.get(worker)) || NONE
}

const NONE: readonly number[] = []

/** The last instant that is not after this one, of instants in rising order. */
export function lastUntil(instants: readonly number[], at: number): number | undefined {
  let [low, high] = [0, instants.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (instants[middle]! <= at) low = middle + 1
    else high = middle
  }
  return instants[low - 1]
}
