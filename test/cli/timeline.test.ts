/** The timeline of a job tells its life in order, whatever state it is in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobPage } from '../../src/cli/job-page.js'
import { plain } from '../../src/cli/paint.js'
import { timeline } from '../../src/cli/timeline.js'
import { emptyHistory, type HistoryEntry, SPEC_DEFAULTS } from '../../src/core/job.js'
import type { JobView } from '../../src/storage/storage.js'

const AT = 1_700_000_000_000

function job(more: Partial<JobView>): JobView {
  return {
    id: '01a22a38-1f84-73c6-b6cd-a6d3f9dee19f',
    kind: 'k',
    queue: 'q',
    priority: 4,
    state: 'ready',
    payload: null,
    spec: SPEC_DEFAULTS,
    history: null,
    enqueuedAt: AT,
    dueAt: AT,
    startedAt: null,
    endedAt: null,
    ranMs: null,
    worker: null,
    ...more,
  }
}

function texts(view: JobView): string[] {
  return timeline(view, (worker) => `name of ${worker}`).map(({ text, detail }) =>
    detail === undefined ? text : `${text} | ${detail}`,
  )
}

test('a job that went well at once', () => {
  const ended = { state: 'completed', startedAt: AT + 100, endedAt: AT + 1_600, dueAt: null, worker: 'w' } as const
  assert.deepEqual(texts(job(ended)), ['enqueued into queue q', 'attempt 1: completed after 1.5s | on name of w'])
  // A history with nothing of attempts in it, such as one that keeps progress.
  assert.deepEqual(
    texts(job({ ...ended, history: emptyHistory() })).at(-1),
    'attempt 1: completed after 1.5s | on name of w',
  )
})

test('failures, a crash and the end, each with worker, reason and wait', () => {
  const entries: HistoryEntry[] = [
    {
      at: AT + 1_000,
      attempt: 1,
      outcome: 'failed',
      worker: 'a',
      ranMs: 20,
      delayMs: 2_000,
      error: { name: 'TypeError', message: 'no' },
    },
    { at: AT + 9_000, attempt: 2, outcome: 'crashed', worker: 'b', note: 'the worker died' },
    {
      at: AT + 9_500,
      attempt: 3,
      outcome: 'timed out',
      worker: 'c',
      ranMs: 300,
      error: { name: 'Timeout', message: 'late' },
    },
  ]
  const history = { ...emptyHistory(), attempts: 3, crashes: 1, entries }
  assert.deepEqual(texts(job({ state: 'dead', reason: 'failed', endedAt: AT + 9_500, dueAt: null, history })), [
    'enqueued into queue q',
    'attempt 1: failed after 20ms: TypeError: no | on name of a; again in 2s',
    'attempt 2: its worker died | on name of b; the worker died',
    'attempt 3: timed out after 300ms: Timeout: late | on name of c',
    'dead (failed)',
  ])
})

test('what is not over yet ends with what it waits for', () => {
  assert.equal(texts(job({})).at(-1), 'due, waits for a worker')
  assert.equal(texts(job({ state: 'delayed', dueAt: AT + 60_000 })).at(-1), 'due')
  assert.equal(
    texts(job({ state: 'running', startedAt: AT + 5, worker: 'w' })).at(-1),
    'attempt 1: running | on name of w',
  )
  assert.match(texts(job({ state: 'running', worker: 'w' })).at(-1)!, /claimed; its start is not reported yet/)
})

test('after a take-over the attempt that runs comes last, at a time that is not known', () => {
  const entries: HistoryEntry[] = [{ at: AT + 12_000, attempt: 1, outcome: 'crashed', worker: 'a' }]
  const history = { ...emptyHistory(), attempts: 1, crashes: 1, entries }
  // A start before the crash is that of the attempt before.
  for (const startedAt of [null, AT + 100]) {
    const lines = timeline(job({ state: 'running', startedAt, worker: 'b', history }), (worker) => worker)
    assert.deepEqual(
      lines.map(({ atMs }) => atMs),
      [AT, AT + 12_000, null],
    )
    assert.equal(lines.at(-1)!.text, 'attempt 2: claimed; its start is not reported yet')
  }
  const known = timeline(job({ state: 'running', startedAt: AT + 12_500, worker: 'b', history }), (worker) => worker)
  assert.deepEqual([known.at(-1)!.atMs, known.at(-1)!.text], [AT + 12_500, 'attempt 2: running'])
  const page = jobPage(job({ state: 'running', worker: 'b', history }), {
    names: new Map(),
    nowMs: AT + 13_000,
    view: { width: undefined, paint: plain },
  })
  assert.match(page, /, 1 worker died while it held it$/m)
  assert.match(page, /its worker died\n.+\n {2}time not known {12}\s+attempt 2: claimed/)
})
