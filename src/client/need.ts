/** Facets that a store may lack. Called by every part of the client before it uses one. */
import { QueueError } from '../core/errors.js'
import type { Storage } from '../storage/storage.js'

type Facet = 'control' | 'inspect' | 'wake' | 'setup' | 'diagnose'

/** The facet. Throws CAPABILITY_MISSING, naming store and facet. */
export function need<F extends Facet>(storage: Storage, facet: F, purpose: string): NonNullable<Storage[F]> {
  const found = storage[facet]
  if (found) return found
  throw new QueueError(
    'CAPABILITY_MISSING',
    `the ${storage.name} store has no facet "${facet}", which ${purpose} needs`,
  )
}
