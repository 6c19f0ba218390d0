/** The checker reads the log that real workers wrote, finds nothing in it, and finds each way in which it was tampered with. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { check, type Verdict } from '../../src/testing/checker/check.js'
import { historyOfEvents, type LogFacts } from '../../src/testing/checker/event-log.js'
import { type Scratch, scratch } from '../support/postgres.js'
import type { LogChildSettings } from './checker-log-child.js'

interface Line {
  at: string
  event: string
  kind?: string
  jobId?: string
  worker?: string
  fence?: number
  attempt?: number
  [key: string]: unknown
}

const CHILD = fileURLToPath(new URL('./checker-log-child.js', import.meta.url))
const ENDS = new Set(['job.completed', 'job.dead'])

class Logging {
  readonly lines: Line[] = []
  private readonly waiting = new Set<() => void>()
  private rest = ''

  constructor(readonly child: ChildProcess) {
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (this.rest + text).split('\n')
      this.rest = lines.pop()!
      for (const line of lines) this.lines.push(JSON.parse(line) as Line)
      for (const look of this.waiting) look()
    })
  }

  /** Its next message; a child that ends before has failed. */
  said(): Promise<unknown[]> {
    const gone = once(this.child, 'exit').then(([code]) => {
      throw new Error(`a worker ended with code ${code}: ${this.rest}`)
    })
    gone.catch(() => {})
    return Promise.race([once(this.child, 'message'), gone])
  }

  static start(settings: LogChildSettings): Logging {
    return new Logging(fork(CHILD, [JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] }))
  }

  until(seen: (lines: readonly Line[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!seen(this.lines)) return
        this.waiting.delete(look)
        resolve()
      }
      this.waiting.add(look)
      look()
    })
  }
}

let store: Scratch
let log: Line[] = []
const children: ChildProcess[] = []

/** One worker is killed with jobs of each kind behind it and two in its hands; another one takes over and ends these. */
before(async () => {
  store = await scratch()
  const { url, schema } = store
  const first = Logging.start({ url, schema, enqueues: 6 })
  children.push(first.child)
  const [{ jobs }] = (await first.said()) as [{ jobs: number }]
  // Those that time out take longer than a beat, which reports the starts of the long ones.
  await first.until((lines) => lines.filter(isStartOf('log.long')).length === 2 && endsOf(lines) === jobs - 2)
  const second = Logging.start({ url, schema, enqueues: 0 })
  children.push(second.child)
  first.child.kill('SIGKILL')
  await second.until((lines) => endsOf(lines) === 2)
  second.child.send('stop')
  await once(second.child, 'exit')
  log = [...first.lines, ...second.lines]
})
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await store.drop()
})

function endsOf(lines: readonly Line[]): number {
  return lines.filter(({ event }) => ENDS.has(event)).length
}

function isStartOf(kind: string): (line: Line) => boolean {
  return (line) => line.event === 'job.started' && line.kind === kind
}

function checked(lines: readonly Line[], facts?: LogFacts): Verdict {
  return check(
    historyOfEvents(
      lines.map((line) => JSON.stringify(line)),
      facts,
    ),
  )
}

function brokenBy(lines: readonly Line[], facts?: LogFacts): string[] {
  return [...new Set(checked(lines, facts).findings.map(({ rule }) => rule))]
}

test('the log of real workers, one of them killed, breaks no rule; each that needs no plan has judged', () => {
  for (const facts of [
    {},
    { covers: 'everything' },
    { covers: 'everything', clocks: 'shared', leaseMs: 2_000 },
  ] as const)
    assert.deepEqual(checked(log, facts).findings, [])
  const { rules, jobs } = checked(log, { covers: 'everything', clocks: 'shared' })
  assert.equal(jobs, log.filter(({ event }) => event === 'job.enqueued').length)
  const judged = (name: string): number => rules.find(({ rule }) => rule === name)!.judged
  for (const name of [
    'one end is told',
    'what has ended stays ended',
    'nothing starts unclaimed',
    'only what was held is settled',
    'a wait is kept',
    'a later start has a larger fence',
    'one run at a time',
    'an attempt is used by a failure, or a crash after its start',
  ])
    assert.ok(judged(name) >= 6, name)
  assert.equal(judged('a crash is noted once'), 2)
  assert.equal(judged('what was accepted is known'), 0)
})

test('lines that are cut, of other programs or of later versions are passed over', () => {
  const text = log.map((line) => JSON.stringify(line))
  const odd = ['', 'listening on 3000', '{"at":"today"', '{"msg":"hello"}', text[0]!.slice(0, -3)]
  const later =
    '{"at":"2030-01-01T00:00:00.000Z","level":"info","event":"job.admired","jobId":"x","kind":"k","queue":"q"}'
  const history = historyOfEvents([...odd, ...text, later])
  assert.deepEqual(history.lines, { read: text.length + 1, skipped: 4 })
  assert.deepEqual(check(history).findings, [])
})

test('a log that begins in the middle, and one of a quiet level, break no rule', () => {
  assert.deepEqual(checked(log.slice(log.length >> 2)).findings, [])
  assert.deepEqual(checked(log.filter(({ level }) => level !== 'debug')).findings, [])
})

// Tampering.

/** A copy in which some lines are replaced by others. */
function tampered(change: (line: Line, i: number) => Line[]): Line[] {
  return log.flatMap(change)
}

function indexOf(found: (line: Line) => boolean): number {
  const i = log.findIndex(found)
  assert.ok(i >= 0)
  return i
}

function of(event: string, kind: string): (line: Line) => boolean {
  return (line) => line.event === event && line.kind === kind
}

/** The worker that was not killed. */
function other(worker: unknown): string {
  return log.find((line) => line.event === 'worker.started' && line.worker !== worker)!.worker!
}

const TAMPERING: readonly { how: string; rule: string; facts?: LogFacts; lines: () => Line[] }[] = [
  {
    how: 'another worker completes a job as well',
    rule: 'one end is told',
    lines: () => {
      const done = log[indexOf(of('job.completed', 'log.good'))]!
      return [...log, { ...done, worker: other(done.worker) }]
    },
  },
  {
    how: 'a job starts that nobody claimed',
    rule: 'nothing starts unclaimed',
    lines: () => {
      const i = indexOf(of('job.claimed', 'log.good'))
      return tampered((line, j) => (i === j ? [] : [line]))
    },
  },
  {
    how: 'a completed job is claimed again',
    rule: 'what has ended stays ended',
    lines: () => {
      const { jobId } = log[indexOf(of('job.completed', 'log.good'))]!
      const claim = log.find((line) => line.event === 'job.claimed' && line.jobId === jobId)!
      return [...log, { ...claim, worker: other(claim.worker), fence: 1e9 }]
    },
  },
  {
    how: 'a dead letter is tried once more',
    rule: 'what has ended stays ended',
    lines: () => {
      const { jobId } = log[indexOf(of('job.dead', 'log.hopeless'))]!
      const claim = log.findLast((line) => line.event === 'job.claimed' && line.jobId === jobId)!
      return [...log, { ...claim, worker: other(claim.worker), fence: 1e9 }]
    },
  },
  {
    how: 'a retry has a smaller fence',
    rule: 'a later start has a larger fence',
    lines: () => {
      const last = log.findLast(isStartOf('log.failing'))!
      return tampered((line) =>
        line.jobId === last.jobId && line.fence === last.fence ? [{ ...line, fence: 0 }] : [line],
      )
    },
  },
  {
    how: 'a snooze uses an attempt up',
    rule: 'an attempt is used by a failure, or a crash after its start',
    lines: () => {
      const i = indexOf(of('job.snoozed', 'log.snoozed'))
      const { jobId } = log[i]!
      return tampered((line, j) =>
        line.jobId === jobId && j > i && 'attempt' in line ? [{ ...line, attempt: 2 }] : [line],
      )
    },
  },
  {
    how: 'a job completes without a start',
    rule: 'only what was held is settled',
    lines: () => {
      const i = indexOf(isStartOf('log.good'))
      return tampered((line, j) => (i === j ? [] : [line]))
    },
  },
  {
    how: 'a crash is noted twice',
    rule: 'a crash is noted once',
    lines: () => tampered((line) => (line.event === 'job.crashed' ? [line, line] : [line])),
  },
  {
    how: 'a crash costs an attempt although its start was not reported',
    rule: 'an attempt is used by a failure, or a crash after its start',
    lines: () => tampered((line) => (line.event === 'job.crashed' ? [{ ...line, started: false }] : [line])),
  },
  {
    how: 'a job is quarantined that never crashed alone',
    rule: 'quarantine follows two crashes alone',
    lines: () => {
      const i = indexOf(of('job.dead', 'log.hopeless'))
      return tampered((line, j) => (i === j ? [{ ...line, reason: 'poison' }] : [line]))
    },
  },
  {
    how: 'a job expires after it ran',
    rule: 'what expired never ran',
    lines: () => {
      const i = indexOf(of('job.completed', 'log.good'))
      return tampered((line, j) => (i === j ? [line, { ...line, event: 'job.expired' }] : [line]))
    },
  },
  {
    how: 'a retry does not wait for its backoff',
    rule: 'a wait is kept',
    facts: { covers: 'everything' },
    lines: () => tampered((line) => ('retryInMs' in line ? [{ ...line, retryInMs: 60_000 }] : [line])),
  },
  {
    how: 'a job runs in two workers at once',
    rule: 'one run at a time',
    facts: { clocks: 'shared', covers: 'everything' },
    lines: () => {
      const i = indexOf((line) => line.event === 'job.completed' && line.kind === 'log.good')
      const done = log[i]!
      const start = log.find((line) => line.event === 'job.started' && line.jobId === done.jobId)!
      const early = new Date(Date.parse(start.at) - 1_000).toISOString()
      const beside = { ...start, worker: other(start.worker), at: early, fence: 0 }
      const lost = { ...beside, event: 'job.failed', at: done.at, durationMs: 2_000 }
      const claim = { ...beside, event: 'job.claimed' }
      return [...log, claim, beside, lost]
    },
  },
  {
    how: 'a job begins after its cancel was answered',
    rule: 'nothing runs after its cancel',
    facts: { clocks: 'shared', covers: 'everything' },
    lines: () => {
      const start = log[indexOf(isStartOf('log.good'))]!
      const at = new Date(Date.parse(start.at) - 1_000).toISOString()
      const { jobId, kind, queue } = start
      return [{ at, level: 'info', event: 'job.cancelled', jobId, kind, queue } as Line, ...log]
    },
  },
]

for (const { how, rule, facts, lines } of TAMPERING)
  test(`in a log it is found: ${how}`, () => {
    assert.ok(brokenBy(lines(), facts).includes(rule), JSON.stringify(checked(lines(), facts).findings))
  })
