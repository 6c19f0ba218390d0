/**
 * Chance of the simulator. Every part draws from a sequence of its own, made of the seed and a word, so that one more
 * draw in one place changes nothing elsewhere. Only sums, products and comparisons: they come out alike on any machine.
 */
import { generator } from '../virtual-time.js'

export class Draws {
  private readonly next: () => number

  constructor(private readonly seed: number) {
    this.next = generator(seed)
  }

  /** Draws of their own, for the thing of that name. */
  fork(...words: readonly (string | number)[]): Draws {
    return new Draws(mixed(this.seed, words.join(' ')))
  }

  /** In [0, 1). */
  fraction(): number {
    return this.next()
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** In [min, max). */
  between(min: number, max: number): number {
    return min + this.next() * (max - min)
  }

  /** A whole number from min to max. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.next() * items.length)]!
  }

  /** By weight; an item of weight 0 never. */
  weighted<Item extends string>(weights: Readonly<Record<Item, number>>): Item {
    const items = Object.keys(weights) as Item[]
    let left = this.next() * items.reduce((sum, item) => sum + weights[item], 0)
    for (const item of items) {
      left -= weights[item]
      if (left < 0) return item
    }
    return items[0]!
  }
}

/** FNV-1a over the word, begun with the seed. */
function mixed(seed: number, word: string): number {
  let hash = (0x811c9dc5 ^ seed) | 0
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) | 0
}
