/** Choices made by a number from chance. Called by the plans of acts. */

export function indexOf(fraction: number, length: number): number {
  return Math.min(length - 1, Math.floor(fraction * length))
}

export function oneOf<Item>(items: readonly Item[], fraction: number): Item {
  return items[indexOf(fraction, items.length)]!
}
