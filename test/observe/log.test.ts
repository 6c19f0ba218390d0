/** Log lines: the same keys everywhere, one line each, whatever is in them. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { EventBus, type QueueEvent } from '../../src/observe/events.js'
import { EVENT_LEVELS, levelOf, logLine, startLog } from '../../src/observe/log.js'

const facts = { jobId: 'id', kind: 'mail.send', queue: 'mail', worker: 'w', attempt: 2 }

test('a line has time, level and event first, then the job’s facts, then the event’s own', () => {
  const event: QueueEvent = { type: 'job.completed', waitedMs: 7, durationMs: 5.000000000000321, ...facts }
  assert.equal(
    logLine(event, 0),
    '{"at":"1970-01-01T00:00:00.000Z","level":"info","event":"job.completed","jobId":"id","kind":"mail.send",' +
      '"queue":"mail","worker":"w","attempt":2,"durationMs":5,"waitedMs":7}',
  )
})

test('levels leave quieter events out, and a handler’s line has its own level', () => {
  const bus = new EventBus()
  const lines: string[] = []
  const stop = startLog(bus, { level: 'warn', env: { now: () => 0 }, write: (line) => lines.push(line) })
  bus.emit({ type: 'job.completed', ...facts, durationMs: 1, waitedMs: 1 })
  bus.emit({ type: 'job.log', ...facts, level: 'info', message: 'hello' })
  bus.emit({ type: 'job.log', ...facts, level: 'error', message: 'help' })
  bus.emit({ type: 'job.dead', ...facts, reason: 'failed' })
  stop()
  bus.emit({ type: 'job.dead', ...facts, reason: 'failed' })
  assert.deepEqual(
    lines.map((line) => [JSON.parse(line).event, JSON.parse(line).level]),
    [
      ['job.log', 'error'],
      ['job.dead', 'error'],
    ],
  )
  assert(lines.every((line) => line.endsWith('}\n')))
  assert.equal(levelOf({ type: 'queue.purged', queue: 'q', deleted: 1 }), EVENT_LEVELS['queue.purged'])
})

test('B98, B100: fields that JSON cannot hold are shown, and the line is one line', () => {
  const fields: Record<string, unknown> = {
    big: 5n,
    text: 'a\0\nb',
    bad: new Proxy({}, { get: () => assert.fail() }),
  }
  fields.self = fields
  const line = logLine({ type: 'job.log', ...facts, level: 'info', message: 'line\none', fields }, 0)
  assert.doesNotMatch(line, /\n|\0/)
  const parsed = JSON.parse(line)
  assert.equal(parsed.message, 'line\none')
  assert.match(parsed.fields, /5n/)
})

test('a line is bounded', () => {
  const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'x'.repeat(100)]))
  const line = logLine({ type: 'job.log', ...facts, level: 'info', message: 'm'.repeat(100_000), fields }, 0)
  assert(line.length < 16_384, String(line.length))
  assert.equal(JSON.parse(line).jobId, 'id')
})
