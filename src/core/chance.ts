/** Chance that comes out the same for the same seed, in whatever order it is asked. Called by the plans of demo and chaos. */
import { createHash } from 'node:crypto'

/** In [0, 1), decided by the seed and the words alone. */
export function chance(seed: number, ...words: readonly (string | number)[]): number {
  const digest = createHash('sha256')
    .update([seed, ...words].join('\0'))
    .digest()
  return digest.readUIntBE(0, 6) / 2 ** 48
}
