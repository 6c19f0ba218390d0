/** A transaction pooler with few server connections, killed, stopped and cut off from the server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './form-run.js'

test('30 s behind a pooler that dies: nothing that correctness needs is kept in a connection', async () => {
  const { verdict } = await holds('pooler')
  assert.ok(verdict.facts.returns.every(({ kind }) => kind.startsWith('pooler ')))
})
