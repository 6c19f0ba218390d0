/** From a URL to a queue: which store, with which options, and what is said when there is none. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { connect } from '../../src/connect.js'
import type { QueueError } from '../../src/core/errors.js'
import { defineJob } from '../../src/core/kind.js'
import type { QueueEvent } from '../../src/observe/events.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'

const kind = defineJob<number>('kind')

test('memory: opens a store of its own', async () => {
  const a = await connect('memory:')
  const b = await connect('memory:')
  const job = await a.enqueue(kind, 5)
  assert.equal((await a.get(job.id))!.payload, 5)
  assert.equal(await b.get(job.id), null)
  assert.equal(a.connection.storage.name, 'memory')
  await Promise.all([a.close(), b.close()])
})

test('an unknown store is refused with those there are, and no secret is told', async () => {
  const urls = [
    'mysql://ada:s3cret@host/db',
    'postgre://ada:s3cret@host/db',
    's3cret',
    '',
    '://s3cret',
    5,
    undefined,
    null,
    'constructor:s3cret',
  ]
  for (const url of urls)
    await assert.rejects(connect(url as string), (error: QueueError) => {
      assert.equal(error.code, 'UNKNOWN_STORE')
      assert.match(error.message, /known: postgres:\/\/.*embedded:.*memory:/)
      assert.doesNotMatch(error.message, /s3cret/)
      return true
    })
  await assert.rejects(connect('postgre://host/db'), /did you mean "postgres:"\?/)
})

test('a store that cannot be reached is told without the secret of its URL', async () => {
  const connecting = connect('postgres://ada:s3cret@127.0.0.1:1/db', { storeTimeout: '2s' })
  await assert.rejects(connecting, (error: QueueError) => {
    assert.equal(error.code, 'STORE_UNAVAILABLE')
    assert.match(error.message, /\(host 127\.0\.0\.1, port 1, user ada, database db\)$/)
    assert.doesNotMatch(error.message + error.stack + String((error.cause as Error)?.message), /s3cret/)
    return true
  })
})

test('of a URL in which a password may have slipped into another part, none is told', async () => {
  for (const url of ['postgres://127.0.0.1:1/s3cret@x', 'postgres://127.0.0.1:1/db?password=s3cret'])
    await assert.rejects(connect(url, { storeTimeout: '2s' }), (error: QueueError) => {
      assert.equal(error.code, 'STORE_UNAVAILABLE')
      assert.match(error.message, /database of the URL$/)
      assert.doesNotMatch(error.message, /s3cret/)
      return true
    })
})

test('options are checked before anything is opened', async () => {
  const cases: [object, string, string][] = [
    [{ shema: 'x' }, 'UNKNOWN_OPTION', 'shema'],
    [{ connections: 0 }, 'INVALID_OPTION', 'connections'],
    [{ migrate: 'no' }, 'INVALID_OPTION', 'migrate'],
    [{ storeTimeout: 0 }, 'INVALID_OPTION', 'storeTimeout'],
    [{ log: 'yes' }, 'INVALID_OPTION', 'log'],
    [{ log: { level: 'loud' } }, 'INVALID_OPTION', 'log.level'],
    [{ jobs: [{}] }, 'INVALID_OPTION', 'jobs[0]'],
    [{ jobs: kind }, 'INVALID_OPTION', 'jobs'],
    [{ jobs: [kind, defineJob('kind')] }, 'INVALID_NAME', 'jobs'],
  ]
  for (const [options, code, field] of cases) await assert.rejects(connect('memory:', options), { code, field }, field)
  await assert.rejects(connect('embedded:'), { code: 'INVALID_OPTION', field: 'url' })
  await (await connect('memory:', { jobs: [kind, kind, defineJob<{ a: string }, number>('other')] })).close()
})

test('the clock and chance of a test reach the store', async () => {
  const time = new VirtualTime()
  const queue = await connect('memory:', { env: time })
  const job = await time.runUntil(queue.enqueue(kind, 1, { delay: '1h' }))
  assert.equal((await queue.get(job.id))!.dueAt, time.now() + 3_600_000)
  assert.equal(queue.connection.env, time)
})

test('log: a function gets the events, and no more after close', async () => {
  const events: QueueEvent[] = []
  const queue = await connect('memory:', { log: (event) => events.push(event) })
  await queue.enqueue(kind, 1)
  assert.deepEqual(
    events.map((event) => event.type),
    ['job.enqueued'],
  )
  await queue.close()
  assert.equal(queue.connection.events.active, false)
})

test('log: true writes lines of JSON to stderr, by level', async (context) => {
  const lines: string[] = []
  context.mock.method(process.stderr, 'write', (line: string) => lines.push(line) > 0)
  const quiet = await connect('memory:', { log: true })
  await quiet.enqueue(kind, 1)
  await quiet.pause('default')
  const loud = await connect('memory:', { log: { level: 'debug' } })
  await loud.enqueue(kind, 1)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).event),
    ['queue.paused', 'job.enqueued'],
  )
  await Promise.all([quiet.close(), loud.close()])
})

test('a queue is disposed of as of anything that has an end', async () => {
  const queue = await connect('memory:')
  await queue[Symbol.asyncDispose]()
  await queue.close()
  await assert.rejects(queue.enqueue(kind, 1), { code: 'QUEUE_CLOSED' })
})
