/** The one thing that maps lack. Called by the tables of this folder. */

/** The value of a key, made when it is missing. */
export function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
