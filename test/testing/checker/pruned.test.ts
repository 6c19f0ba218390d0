/** Jobs of which nothing is left but what somebody was told. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { check } from '../../../src/testing/checker/check.js'
import type { History, Witnessed } from '../../../src/testing/checker/history.js'

const EXPIRED: Witnessed[] = [
  { process: 'worker-1', event: { at: 5, what: 'expired', id: 'job-1' } },
  { process: 'worker-1', event: { at: 5, what: 'settled', id: 'job-1', worker: 'w1', as: 'dead', reason: 'expired' } },
]

const DISCARDED: Witnessed[] = [
  { process: 'operator-1', event: { at: 7, what: 'asked', ask: 'operator-1#1', operation: 'discard', id: 'job-1' } },
  {
    process: 'operator-1',
    event: { at: 9, what: 'answered', ask: 'operator-1#1', operation: 'discard', id: 'job-1', answer: 'discarded' },
  },
]

function brokenWith(retention: NonNullable<History['retention']>, more: Witnessed[] = []): string[] {
  const history: History = {
    events: [...EXPIRED, ...more],
    records: [],
    leaseMs: 10_000,
    retention,
    expect: () => undefined,
  }
  return check(history).findings.map(({ rule }) => rule)
}

test('a job that expired unstarted, and whose record is pruned, has no number that anybody could know', () => {
  assert.deepEqual(brokenWith('pruned'), [])
  assert.ok(brokenWith('all kept').includes('nothing comes unasked'))
})

// Seed 11806: its producer died before it heard of the job's id.
test('nor has one whose record was discarded, where records are kept otherwise', () => {
  assert.deepEqual(brokenWith('all kept', DISCARDED), [])
})
