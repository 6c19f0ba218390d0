/** "Did you mean": the known word nearest to a mistyped one. Called where unknown options, names and URLs are refused. */

/** Longer words are not compared: nobody mistypes them by a letter, and the comparison is quadratic. */
const COMPARED_LENGTH_MAX = 64

/** The nearest of `known`, if it is near enough to be meant: a third of the letters may differ. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  if (given.length > COMPARED_LENGTH_MAX) return undefined
  const word = given.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(word, candidate.toLowerCase())
    if (distance >= bestDistance) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** `; did you mean "x"?`, or nothing: to end a message with. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const found = nearest(given, known)
  return found === undefined ? '' : `; did you mean ${JSON.stringify(found)}?`
}

/** Letters to insert, delete, replace or swap with their neighbour (Damerau-Levenshtein, each letter moved once). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) row[j] = Math.min(row[j]!, before[j - 2]! + 1)
    }
    before = last
    last = row
  }
  return last[b.length]!
}
