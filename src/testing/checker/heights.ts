/** A row of numbers that answers quickly which of a span are high. Pure; used by the rules of order. */

export class Heights {
  /** Of each width 2^k, the highest of the span that begins at each index. */
  private readonly levels: (readonly number[])[]

  constructor(values: readonly number[]) {
    this.levels = [values]
    for (let width = 1; width * 2 <= values.length; width *= 2) {
      const below = this.levels.at(-1)!
      const count = values.length - width * 2 + 1
      this.levels.push(Array.from({ length: count }, (_, i) => Math.max(below[i]!, below[i + width]!)))
    }
  }

  /** Of the indices `from` to `to - 1`; nothing is lower than that of none. */
  highest(from: number, to: number): number {
    if (to <= from) return Number.NEGATIVE_INFINITY
    const level = 31 - Math.clz32(to - from)
    return Math.max(this.levels[level]![from]!, this.levels[level]![to - (1 << level)]!)
  }

  /** The indices of those above, in rising order, without a look at the others. */
  *above(limit: number, from: number, to: number): Generator<number, void> {
    if (this.highest(from, to) <= limit) return
    if (to - from === 1) {
      yield from
      return
    }
    const middle = (from + to) >> 1
    yield* this.above(limit, from, middle)
    yield* this.above(limit, middle, to)
  }
}
