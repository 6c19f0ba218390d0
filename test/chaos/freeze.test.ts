/** Processes stopped for longer than their lease: what they held is taken over, and what they say later is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './form-run.js'

test('30 s of freezes: whoever wakes up has lost what it held, goes on, and nothing is lost, doubled or settled twice', async () => {
  const { verdict, judged } = await holds('freeze')
  assert.ok(verdict.facts.stalledTakeOvers > 0, 'nothing was taken over from the one that was stopped')
  assert.ok(judged.get('nobody alive is taken over')! > 0)
  assert.ok(judged.get('no two valid leases')! > 0)
  assert.deepEqual(Object.keys(verdict.facts.kills), [])
})
