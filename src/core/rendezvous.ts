/**
 * Which of several stores a job goes to: rendezvous hashing. Each store has a score for each key, and the highest one takes
 * it. So a store that is added takes its own share and moves nothing else, and what a store that leaves had is spread over
 * the others. Pure; called by the partitioned store.
 *
 * The scores are part of the contract: producers of different releases have to agree on them. Tests hold them to fixed values.
 */
import type { JobSpec } from './job.js'

/** What jobs are kept together by. */
export const PARTITION_KEYS = ['tenant', 'kind', 'idempotency key'] as const
/** What jobs are kept together by: those of one tenant, kind or idempotency key go to one store. */
export type PartitionKey = (typeof PARTITION_KEYS)[number]

/** What decides of a job. */
export interface Routed {
  id: string
  kind: string
  spec: Pick<JobSpec, 'tenant' | 'idempotencyKey'>
}

/**
 * The text that is hashed. A job without a tenant goes by its idempotency key, so that its repeats meet in one store, and
 * one without either by its id: those are spread evenly.
 */
export function routeOf({ id, kind, spec }: Routed, by: PartitionKey): string {
  if (by === 'kind') return `kind ${kind}`
  if (by === 'tenant' && spec.tenant !== undefined) return `tenant ${spec.tenant}`
  return spec.idempotencyKey === undefined ? `id ${id}` : `key ${kind} ${spec.idempotencyKey}`
}

/** A text as two numbers of 32 bits. */
type Digest = readonly [number, number]

/** A choice between names; each is hashed once. */
export class Rendezvous {
  private readonly digests: readonly Digest[]

  constructor(names: readonly string[]) {
    this.digests = names.map(digest)
  }

  /** The index of the name that takes the route; of those alone whose index is `open`. -1 where none is. */
  choose(route: string, open: (index: number) => boolean = () => true): number {
    const key = digest(route)
    let best = -1
    let highest = -1
    for (let index = 0; index < this.digests.length; index++) {
      if (!open(index)) continue
      const score = scoreOf(key, this.digests[index]!)
      if (score <= highest) continue
      best = index
      highest = score
    }
    return best
  }
}

/** 53 bits: two stores never meet in one by chance. */
function scoreOf([high, low]: Digest, [nameHigh, nameLow]: Digest): number {
  return mixed(high ^ nameHigh) * 2_097_152 + (mixed(low ^ nameLow) >>> 11)
}

/** Two multiplicative hashes of the UTF-16 units that cross in the end. No digest of node:crypto: this is done for each job. */
function digest(text: string): Digest {
  let one = 0xdeadbeef
  let two = 0x41c6ce57
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    one = Math.imul(one ^ unit, 2_654_435_761)
    two = Math.imul(two ^ unit, 1_597_334_677)
  }
  return [mixed(one ^ (two >>> 13)), mixed(two ^ (one >>> 13))]
}

/** The finish of MurmurHash3: each bit of the input turns half of those of the output. */
function mixed(value: number): number {
  let bits = value
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
