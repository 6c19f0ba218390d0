/** Events become lines of a history in one way, whoever writes it; and a job is read from the store in one way. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { QueueEvent } from '../../../src/observe/events.js'
import { eventOf, recordOf } from '../../../src/testing/checker/history.js'
import { LogFile, LogTail } from '../../../src/testing/checker/log-file.js'
import { MESSAGE_LENGTH_MAX, saidOf } from '../../../src/testing/checker/told.js'

const job = { jobId: 'j', kind: 'k', queue: 'q', worker: 'w', attempt: 2 }
const settled = { what: 'settled', id: 'j', worker: 'w', attempt: 2 }
const error = { name: 'Error', message: 'no' }

const LINES: readonly [QueueEvent, object | undefined][] = [
  [
    { type: 'job.claimed', ...job, fence: 7, waitedMs: 3 },
    { what: 'claimed', id: 'j', worker: 'w', fence: 7, queue: 'q', kind: 'k', attempt: 2, waitedMs: 3 },
  ],
  [
    { type: 'job.completed', ...job, durationMs: 1, waitedMs: 3 },
    { ...settled, as: 'completed' },
  ],
  [
    { type: 'job.failed', ...job, durationMs: 1, error, retryInMs: 50 },
    { ...settled, as: 'failed', againInMs: 50 },
  ],
  [
    { type: 'job.failed', ...job, durationMs: 1, error },
    { ...settled, as: 'failed' },
  ],
  [
    { type: 'job.snoozed', ...job, durationMs: 1, delayMs: 60 },
    { ...settled, as: 'snoozed', againInMs: 60 },
  ],
  [
    { type: 'job.dead', ...job, reason: 'poison' },
    { ...settled, as: 'dead', reason: 'poison' },
  ],
  [
    { type: 'job.cancelled', ...job },
    { ...settled, as: 'cancelled' },
  ],
  [
    { type: 'job.expired', ...job },
    { what: 'expired', id: 'j' },
  ],
  [
    { type: 'worker.started', worker: 'w', queues: ['q'], concurrency: 5 },
    { what: 'worker', worker: 'w', is: 'up', slots: 5 },
  ],
  [
    { type: 'worker.draining', worker: 'w', reason: 'r', running: 1 },
    { what: 'worker', worker: 'w', is: 'draining' },
  ],
  [
    { type: 'worker.loop blocked', worker: 'w', blockedMs: 9 },
    { what: 'worker', worker: 'w', is: 'blocked', ms: 9 },
  ],
  // Told by the handler itself, by the producer, by the operator.
  [{ type: 'job.started', ...job, fence: 7, waitedMs: 3 }, undefined],
  [{ type: 'job.enqueued', jobId: 'j', kind: 'k', queue: 'q', delayMs: 0, priority: 4 }, undefined],
  [{ type: 'job.cancelled', jobId: 'j', kind: 'k', queue: 'q' }, undefined],
]

for (const [event, said] of LINES)
  test(`${event.type}${'worker' in event ? '' : ', of no worker'}: ${said === undefined ? 'no line' : 'one line'}`, () => {
    assert.deepEqual(saidOf(event), said)
  })

test('of an error as much is written as a line may hold', () => {
  const said = saidOf({
    type: 'store.unavailable',
    operation: 'beat',
    error: { name: 'Error', message: 'x'.repeat(2 * MESSAGE_LENGTH_MAX) },
    retryInMs: 1,
  })
  assert.deepEqual(said, { what: 'trouble', operation: 'beat', message: 'x'.repeat(MESSAGE_LENGTH_MAX) })
})

test('a record says how often a job was redriven, and which worker it was lost with', () => {
  const entries = [{ outcome: 'lost', worker: 'w' }]
  const history = { attempts: 1, crashes: 1, crashesAlone: 0, redrives: 2, entries }
  const view = { id: 'j', state: 'dead', reason: 'lost', payload: { n: 3 }, history }
  assert.deepEqual(recordOf(view as unknown as Parameters<typeof recordOf>[0]), {
    ...{ id: 'j', n: 3, state: 'dead', reason: 'lost', attempts: 1, crashes: 1, crashesAlone: 0, redrives: 2 },
    lostWith: 'w',
  })
})

test('a log holds nothing but ASCII, and gives back every character', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-log-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'a.jsonl')
  const log = new LogFile(path)
  const said = {
    what: 'trouble' as const,
    operation: 'beat',
    message: 'Zeit\u00fcberschreitung \u2013 \u{1f6ab}\n\u007f',
  }
  log.write(said, 5)
  log.close()
  const lines = [...new LogTail(path).lines()]
  assert.match(lines.join(), /^[ -~]+$/)
  assert.deepEqual(lines.map(eventOf), [{ at: 5, ...said }])
})
