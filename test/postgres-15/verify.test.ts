/** `leasehold verify` on PostgreSQL 15. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifiesWell } from '../cli/verify-run.js'
import { serverUrl } from '../support/postgres.js'

test('a healthy store keeps every promise, and nothing is left in it', async () => {
  const { store, cases, drills } = await verifiesWell(serverUrl(15))
  assert.match(store.version!, /^15\./)
  assert.equal(cases.kept, cases.all)
  assert.ok(drills!.drills.every(({ verdict }) => verdict === 'kept'))
})
