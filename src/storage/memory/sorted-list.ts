/**
 * A list that is always in order: the index of the memory store. Items are found by
 * a pair, which must be unique in the list and must not change while the item is in it.
 */

/** Compared one after the other; the second ones of a list are all numbers, or all texts. */
export type SortKey = readonly [number, number | string]

/** A longer chunk is split in two. Small enough to shift cheaply, large enough to keep chunks few. */
const CHUNK_MAX = 512

export class SortedList<T> {
  private readonly chunks: T[][] = []
  private length = 0

  constructor(readonly keyOf: (item: T) => SortKey) {}

  get size(): number {
    return this.length
  }

  first(): T | undefined {
    return this.chunks[0]?.[0]
  }

  last(): T | undefined {
    return this.chunks.at(-1)?.at(-1)
  }

  add(item: T): void {
    const key = this.keyOf(item)
    const at = Math.min(this.chunkOf(key), this.chunks.length - 1)
    this.length += 1
    if (at < 0) {
      this.chunks.push([item])
      return
    }
    const chunk = this.chunks[at]!
    chunk.splice(this.indexIn(chunk, key), 0, item)
    if (chunk.length > CHUNK_MAX) this.chunks.splice(at + 1, 0, chunk.splice(chunk.length >> 1))
  }

  /** False when it is not there. */
  delete(item: T): boolean {
    const key = this.keyOf(item)
    const at = this.chunkOf(key)
    const chunk = this.chunks[at]
    if (chunk === undefined) return false
    const index = this.indexIn(chunk, key)
    if (chunk[index] !== item) return false
    chunk.splice(index, 1)
    if (chunk.length === 0) this.chunks.splice(at, 1)
    this.length -= 1
    return true
  }

  /** In order, all or those after `key`. The list must not change meanwhile. */
  *items(after?: SortKey): Generator<T> {
    const start = after === undefined ? 0 : this.chunkOf(after)
    for (let at = start; at < this.chunks.length; at++) {
      for (const item of this.chunks[at]!) {
        if (after === undefined || at > start || compareKeys(this.keyOf(item), after) > 0) yield item
      }
    }
  }

  /** From the end, all or those before `key`. The list must not change meanwhile. */
  *backwards(before?: SortKey): Generator<T> {
    const start = before === undefined ? this.chunks.length : this.chunkOf(before)
    for (let at = Math.min(start, this.chunks.length - 1); at >= 0; at--) {
      const chunk = this.chunks[at]!
      for (let index = chunk.length - 1; index >= 0; index--) {
        const item = chunk[index]!
        if (before === undefined || at < start || compareKeys(this.keyOf(item), before) < 0) yield item
      }
    }
  }

  /** The first `limit` that pass, up to the first that fails `until`. A copy: the list may change afterwards. */
  take(limit: number, until: (item: T) => boolean = () => true): T[] {
    const taken: T[] = []
    if (limit <= 0) return taken
    for (const item of this.items()) {
      if (!until(item)) break
      taken.push(item)
      if (taken.length >= limit) break
    }
    return taken
  }

  /** The first chunk whose last item is not before the key; the number of chunks when there is none. */
  private chunkOf(key: SortKey): number {
    return lowerBound(this.chunks.length, (at) => compareKeys(this.keyOf(this.chunks[at]!.at(-1)!), key) < 0)
  }

  private indexIn(chunk: T[], key: SortKey): number {
    return lowerBound(chunk.length, (index) => compareKeys(this.keyOf(chunk[index]!), key) < 0)
  }
}

/** The first index that is not `before`; they all come first. */
function lowerBound(length: number, before: (index: number) => boolean): number {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (before(middle)) low = middle + 1
    else high = middle
  }
  return low
}

function compareKeys(a: SortKey, b: SortKey): number {
  if (a[0] !== b[0]) return a[0] - b[0]
  return a[1] === b[1] ? 0 : a[1] < b[1] ? -1 : 1
}
