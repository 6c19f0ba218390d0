/**
 * What jobs of a passed-over level wait, counted in starts from a log of them. Pure. Called by ageing.
 */

export interface PassedOver {
  /** When each of them was known to wait, microseconds; of those at one instant the first one is before the others. */
  readyUs: ArrayLike<number>
  /** When each of them started; NaN: not by the end of the log. */
  startUs: ArrayLike<number>
  /** When anything started, in order, those of them included. */
  startsUs: ArrayLike<number>
}

export interface Passing {
  /** The most starts from one of them to the next one, that one included, while it waited. */
  maxStartsBetween: number
  /**
   * The most starts that one of them waited beyond `interval` for itself and each of them before it: those that waited when
   * it came in, and those that came later and went first.
   */
  maxStartsBeyond: number
  /** How many of them started. */
  started: number
}

/** `interval`: how many starts each of them may wait for each one before it. */
export function passing({ readyUs, startUs, startsUs }: PassedOver, interval: number): Passing {
  const byStart = Array.from(startUs, (us, n) =>
    Number.isNaN(us) ? { n, at: startsUs.length } : { n, at: upTo(startsUs, us) },
  )
  byStart.sort((a, b) => a.at - b.at || a.n - b.n)
  const ready = Array.from(readyUs, (us) => upTo(startsUs, us))
  let [maxStartsBetween, maxStartsBeyond] = [0, Number.NEGATIVE_INFINITY]
  for (const [nth, { n, at }] of byStart.entries()) {
    const from = ready[n]!
    const previous = byStart[nth - 1]?.at ?? 0
    maxStartsBetween = Math.max(maxStartsBetween, at - Math.max(from, previous))
    // Itself, those that went first while it waited, and those that were there before it and have not started either.
    const first = byStart.slice(0, nth).filter((other) => other.at > from).length
    const left = byStart.slice(nth + 1).filter((other) => isBefore(readyUs, other.n, n)).length
    maxStartsBeyond = Math.max(maxStartsBeyond, at - from - interval * (first + left + 1))
  }
  return {
    maxStartsBetween,
    maxStartsBeyond,
    started: startUs.length - Array.from(startUs).filter(Number.isNaN).length,
  }
}

function isBefore(readyUs: ArrayLike<number>, one: number, other: number): boolean {
  return readyUs[one]! < readyUs[other]! || (readyUs[one] === readyUs[other] && one < other)
}

/** How many are at most so large. */
function upTo(sorted: ArrayLike<number>, value: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! <= value) low = middle + 1
    else high = middle
  }
  return low
}
