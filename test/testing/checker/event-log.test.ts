/** Histories made of recorded logs, line by line as the library writes them. A real log is judged in test/process/checker-log.test.ts. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { check } from '../../../src/testing/checker/check.js'
import { historyOfEvents } from '../../../src/testing/checker/event-log.js'

const AT = '2026-01-01T00:00:01.000Z'

function line(type: string, facts: object): string {
  return JSON.stringify({ at: AT, event: type, worker: 'w1', ...facts })
}

/** Two jobs that one slot ran within one millisecond. */
function quick(durationMs: number): string[] {
  const job = (jobId: string, fence: number): string[] => {
    const facts = { jobId, kind: 'quick', queue: 'q', attempt: 1, fence, waitedMs: 0 }
    return [line('job.started', facts), line('job.completed', { ...facts, durationMs })]
  }
  const [first, second] = [job('a', 1), job('b', 2)]
  const claims = ['a', 'b'].map((jobId, i) =>
    line('job.claimed', { jobId, kind: 'quick', queue: 'q', attempt: 1, fence: i + 1, waitedMs: 0 }),
  )
  const begin = line('worker.started', { queues: ['q'], concurrency: 1 })
  return [begin, ...claims, first[0]!, second[0]!, first[1]!, second[1]!]
}

function brokenIn(lines: string[]): string[] {
  return check(historyOfEvents(lines)).findings.map(({ rule }) => rule)
}

test('instants of a log are cut to milliseconds: short jobs, one after the other in one slot, are well', () => {
  assert.deepEqual(brokenIn(quick(0.4)), [])
})

test('two that last, and begin at the same time, are too many for one slot', () => {
  const late = (text: string): string => text.replace(AT, '2026-01-01T00:00:01.900Z')
  const lines = quick(900).map((text) => (text.includes('job.completed') ? late(text) : text))
  assert.deepEqual(brokenIn(lines), ['no worker runs more than its slots'])
})
