/** Each verdict of `explain` against what the next claim does, in random worlds on PostgreSQL. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { postgresFactory } from '../support/conformance.js'
import { compareWithClaims } from '../support/explained.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch

before(async () => {
  store = await scratch()
})
after(() => store.drop())

test('what is told as held is not taken by the next claim, and what is told as next is', async () => {
  const seen = await compareWithClaims(postgresFactory(store, store.url), 15)
  for (const what of ['its turn', 'taken', 'passed over', 'not due'] as const)
    assert((seen[what] ?? 0) > 0, `no world had one that is "${what}": ${JSON.stringify(seen)}`)
})
