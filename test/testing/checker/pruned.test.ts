/** Jobs of which nothing is left but what somebody was told. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { check } from '../../../src/testing/checker/check.js'
import type { History, Witnessed } from '../../../src/testing/checker/history.js'

const EXPIRED: Witnessed[] = [
  { process: 'worker-1', event: { at: 5, what: 'expired', id: 'job-1' } },
  { process: 'worker-1', event: { at: 5, what: 'settled', id: 'job-1', worker: 'w1', as: 'dead', reason: 'expired' } },
]

function brokenWith(retention: NonNullable<History['retention']>): string[] {
  const history: History = { events: EXPIRED, records: [], leaseMs: 10_000, retention, expect: () => undefined }
  return check(history).findings.map(({ rule }) => rule)
}

test('a job that expired unstarted, and whose record is pruned, has no number that anybody could know', () => {
  assert.deepEqual(brokenWith('pruned'), [])
  assert.ok(brokenWith('all kept').includes('nothing comes unasked'))
})
