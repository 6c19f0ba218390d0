/** How a claim is divided between the queues of one worker, by weight. Pure; the fetcher keeps the credits. */

export interface WeightedQueue {
  queue: string
  /** Above zero. */
  weight: number
  /** What earlier claims lost (or had too much) by rounding; all credits of a worker add up to zero. */
  credit: number
  /** Jobs of it claimed so far. */
  turn: number
}

/**
 * At most `share` jobs of each queue, then what others left: whole numbers that add up to `limit`. What rounding takes
 * is carried over as credit, so that even claims of one job follow the weights. The queues come in the order of their
 * remaining credit: whoever is next in line gets first what others leave.
 */
export function sharesOf(
  queues: readonly WeightedQueue[],
  limit: number,
): { queues: WeightedQueue[]; shares: { queue: string; share: number; turn: number }[] } {
  const total = queues.reduce((sum, { weight }) => sum + weight, 0)
  const parts = queues.map(({ queue, weight, credit, turn }) => {
    const exact = (limit * weight) / total
    const share = Math.floor(exact)
    return { queue, weight, credit: credit + exact - share, turn, share }
  })
  const given = parts.reduce((sum, { share }) => sum + share, 0)
  for (let left = limit - given; left > 0; left--) {
    const next = parts.reduce((most, part) => (part.credit > most.credit ? part : most))
    next.share += 1
    next.credit -= 1
  }
  return {
    queues: parts.map(({ queue, weight, credit, turn }) => ({ queue, weight, credit, turn })),
    shares: parts.toSorted((a, b) => b.credit - a.credit).map(({ queue, share, turn }) => ({ queue, share, turn })),
  }
}
