/** What worker() accepts and refuses. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { BoundHandler } from '../../src/core/handler.js'
import { defineJob } from '../../src/core/kind.js'
import { readWorkerOptions, type WorkerOptions } from '../../src/worker/options.js'
import { handler, virtualKit } from './kit.js'

const NONSENSE = [Number.NaN, Number.POSITIVE_INFINITY, 1e20, 2 ** 53 + 1, -1, 'soon', null, {}]

function refuses(options: unknown, code: string, field?: string): void {
  const { kit } = virtualKit()
  assert.throws(
    () => kit.worker([handler()], options as WorkerOptions),
    (error: { code: string; field?: string }) => {
      assert.equal(error.code, code)
      if (field) assert.equal(error.field, field)
      return true
    },
  )
}

test('B43: nonsense in a number or a duration is refused by name, before anything happens', () => {
  for (const value of [...NONSENSE, 0, 1.5, -0]) {
    refuses({ concurrency: value }, 'INVALID_OPTION', 'concurrency')
    refuses({ claimBatch: value }, 'INVALID_OPTION', 'claimBatch')
  }
  for (const field of ['lease', 'beat', 'poll', 'shutdownGrace', 'prefetchWindow'])
    for (const value of NONSENSE) refuses({ [field]: value }, 'INVALID_OPTION', field)
})

test('an unknown option is refused, with the one that was meant', () => {
  const { kit } = virtualKit()
  const options = { concurency: 5 } as WorkerOptions
  assert.throws(() => kit.worker([handler()], options), /did you mean "concurrency"/)
})

test('a beat has to fit twice into a lease', () => {
  refuses({ lease: '10s', beat: '5s' }, 'INVALID_OPTION', 'beat')
  assert.ok(readWorkerOptions({ lease: '10s', beat: '4.9s' }, [handler()]))
})

test('queues: those of the handlers, a list, or weights', () => {
  const handlers: BoundHandler[] = [handler(), handler(() => {}, { kind: 'other', queue: 'mail' })]
  const queues = (given?: WorkerOptions): unknown => readWorkerOptions(given, handlers).queues
  assert.deepEqual(queues(), [
    { queue: 'queue', weight: 1 },
    { queue: 'mail', weight: 1 },
  ])
  assert.deepEqual(queues({ queues: ['mail'] }), [{ queue: 'mail', weight: 1 }])
  assert.deepEqual(queues({ queues: { mail: 3, queue: 0.5 } }), [
    { queue: 'mail', weight: 3 },
    { queue: 'queue', weight: 0.5 },
  ])
  refuses({ queues: [] }, 'INVALID_OPTION', 'queues')
  refuses({ queues: { mail: 0 } }, 'INVALID_OPTION', 'queues.mail')
  refuses({ queues: ['no spaces'] }, 'INVALID_NAME')
})

test('two handlers for one kind, or none at all, are refused', () => {
  const { kit } = virtualKit()
  assert.throws(() => kit.worker([handler(), handler()]), { code: 'DUPLICATE_HANDLER' })
  assert.throws(() => kit.worker([]), { code: 'INVALID_OPTION', message: 'handlers: give at least one handler' })
})

test('a kind without its handler is refused by its place, and what to do is said', () => {
  const { kit } = virtualKit()
  const given = (...handlers: unknown[]) => kit.worker(handlers as BoundHandler[])
  assert.throws(() => given(handler(), defineJob('mail.send')), {
    code: 'INVALID_OPTION',
    field: 'handlers[1]',
    message: /kind "mail.send".*kind\.handle\(fn\)/,
  })
  for (const nonsense of [null, undefined, 'mail.send', () => {}, {}, [handler()]])
    assert.throws(() => given(nonsense), {
      code: 'INVALID_OPTION',
      field: 'handlers[0]',
      message: /kind\.handle\(fn\)/,
    })
})
