/**
 * The conformance suite on two memory stores as one: once with the jobs of a kind together, where nearly all of it holds, and
 * once with jobs spread by their ids, where what looks and what steers has to put them together again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PartitionKey } from '../../src/core/rendezvous.js'
import { openMemory } from '../../src/storage/memory/index.js'
import { CASES, runCase, type StoreFactory } from '../../src/testing/index.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { partitioned, wholePort } from '../support/partitioned.js'

const over =
  (by: PartitionKey): StoreFactory =>
  async () => {
    const env = new VirtualTime()
    const stores = ['one', 'two'].map((name) => ({ name, storage: openMemory({ env }) }))
    const store = wholePort(partitioned(stores, by, env))
    return { open: async () => store, advance: (ms) => env.advance(ms), driftMs: 0, discard: async () => {} }
  }

/** Why a promise of one store is none of several. A name, or what names begin with. */
type Skips = Readonly<Record<string, string>>

const TWO_WORKERS = 'the worker of the suite is one in each store, and is counted there'
const ORDER = 'order is kept inside of a store'
const LIMITS = 'a limit holds in each store'

const ALWAYS: Skips = {
  'wake:': 'workers listen at each store by itself',
  'capacity: slots are those of the workers': TWO_WORKERS,
  'workers: show who they are': TWO_WORKERS,
  'take over: a worker that died without a job': TWO_WORKERS,
  'match: dead letters by all that a filter says': 'jobs are matched store by store',
}

const OF_KINDS: Skips = {
  ...ALWAYS,
  'order: kinds of one priority stand in one line': ORDER,
  'tenants: inside of one it is first come, first served': ORDER,
  'depth: a kind may have a limit of its own': LIMITS,
  'capacity: what waits is counted': 'of a limit of each kind nothing is told over several stores',
}

const SPREAD: Skips = {
  ...ALWAYS,
  'order:': ORDER,
  'tenants:': ORDER,
  'facts:': ORDER,
  'promote:': ORDER,
  'expire:': ORDER,
  'claim:': 'what a worker takes at once, and in which order, is of each store',
  'beat:': 'a lease is of one store',
  'unregister:': 'a lease is of one store',
  'settle:': 'a lease is of one store',
  'take over:': 'a lease is of one store',
  'suspect:': 'whether a suspect is alone is decided by the worker (test/worker/partitions.test.ts)',
  'limits:': LIMITS,
  'depth:': LIMITS,
  'intake:': LIMITS,
  'job keys:': 'the permits of a key are of each store',
  'capacity:': LIMITS,
  'prune:': 'how many records are kept is of each store',
  'match:': 'jobs are matched store by store',
  'purge: so many at a time': 'a step is one in each store',
  'redrive: goes by due time': ORDER,
  'retry: goes ahead of the backlog': ORDER,
  'control: an odd history stops nobody': ORDER,
  'keys: after any end': ORDER,
  'keys: what is refused for its id': 'a job without a tenant goes by its key, and an id is known where it went',
  'enqueue: an id given twice in one call': 'a job without a tenant goes by its key, and an id is known where it went',
  'enqueue: an instant long past': ORDER,
  'enqueue: a queue that is drained': ORDER,
  'keys: a refused job takes no key': 'a job without a tenant goes by its key, and an id is known where it went',
  'enqueue: of five thousand': 'an id is known to its own store alone',
  'payload: 200 levels': ORDER,
}

for (const [title, by, skips] of [
  ['jobs of a kind together', 'kind', OF_KINDS],
  ['jobs spread by id', 'tenant', SPREAD],
] as const) {
  const skipped = (name: string): string | undefined => Object.keys(skips).find((start) => name.startsWith(start))
  for (const one of CASES) {
    const start = skipped(one.name)
    test(`${title}: ${one.name}`, { skip: start === undefined ? false : skips[start]! }, async () => {
      const { status } = await runCase(one, over(by))
      assert.equal(status, 'passed')
    })
  }
  test(`${title}: what is skipped is there`, () => {
    for (const start of Object.keys(skips))
      assert.ok(
        CASES.some(({ name }) => name.startsWith(start)),
        start,
      )
  })
}
