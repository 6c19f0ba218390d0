/** Pages over several stores: each has a place of its own in its own list, and the cursor of a page holds all of them. */
import { QueueError } from '../../core/errors.js'

/** Of each store by name: where its next page begins, null at its end; absent: at its begin. */
export type Places = Record<string, string | null>

/** What one store gave. */
export interface Part<T> {
  name: string
  items: readonly T[]
  /** One for each item: the place behind it. */
  cursors: readonly string[]
  next: string | null
}

/** An item, the store it is of, and the place behind it there. */
export interface Merged<T> {
  name: string
  item: T
  cursor: string
}

/**
 * The first `limit` of all, each store's in its own order, and where each goes on. `before` says which of two heads comes first.
 */
export function merged<T>(
  parts: readonly Part<T>[],
  limit: number,
  before: (a: T, b: T) => boolean,
): { items: Merged<T>[]; places: Places } {
  const taken = parts.map(() => 0)
  const items: Merged<T>[] = []
  const places: Places = {}
  while (items.length < limit) {
    let first = -1
    for (let index = 0; index < parts.length; index++) {
      const head = parts[index]!.items[taken[index]!]
      if (head === undefined) continue
      if (first < 0 || before(head, parts[first]!.items[taken[first]!]!)) first = index
    }
    if (first < 0) break
    const { name, items: all, cursors, next } = parts[first]!
    const at = taken[first]!++
    items.push({ name, item: all[at]!, cursor: cursors[at]! })
    places[name] = at + 1 === all.length ? next : cursors[at]!
  }
  for (const { name, items: all } of parts) if (all.length === 0) places[name] = null
  return { items, places }
}

export function encodePlaces(places: Places): string {
  return Buffer.from(JSON.stringify(places)).toString('base64url')
}

/** Throws INVALID_OPTION for what is none of ours. */
export function decodePlaces(after: string | undefined): Places {
  if (after === undefined) return {}
  try {
    const places: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
    const fits = (value: unknown): boolean => value === null || typeof value === 'string'
    if (typeof places === 'object' && places !== null && !Array.isArray(places) && Object.values(places).every(fits))
      return places as Places
  } catch {
    // Told below.
  }
  throw new QueueError('INVALID_OPTION', 'after: give the `next` of the page before', { field: 'after' })
}

/** Null where every store is at its end. */
export function nextOf(places: Places, names: readonly string[]): string | null {
  return names.every((name) => places[name] === null) ? null : encodePlaces(places)
}
