/** Kinds: what defineJob accepts, the policy it makes, and the handlers it binds. */
import assert from 'node:assert/strict'
import test from 'node:test'
import * as v from 'valibot'
import { z } from 'zod'
import type { ErrorCode } from '../../src/core/errors.js'
import { dead, type HandlerContext } from '../../src/core/handler.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import { defineJob, isKind } from '../../src/core/kind.js'

const context = {} as HandlerContext

/** As plain JavaScript gives them. */
function refused(options: object, code: ErrorCode, field: string, message = /./): void {
  assert.throws(() => defineJob('kind', options), { code, field, message })
}

test('a kind without options has the documented defaults', () => {
  const kind = defineJob('mail.send')
  assert.equal(kind.name, 'mail.send')
  assert.equal(kind.queue, 'default')
  assert.equal(kind.priority, 4)
  assert.deepEqual(kind.spec, SPEC_DEFAULTS)
  assert.equal(kind.idempotencyRetentionMs, 86_400_000)
  assert(isKind(kind))
  for (const other of [null, undefined, 'mail.send', {}, () => 5]) assert(!isKind(other))
})

test('options become a policy, frozen and the same object each time', () => {
  const kind = defineJob('kind', {
    queue: 'webhooks',
    priority: 'high',
    timeout: '20s',
    ageLimit: '2h',
    expiresIn: '1d',
    keep: 'failures',
    retry: { attempts: 3, backoff: { type: 'linear', base: '5s', cap: '1m', jitter: 0 } },
    idempotencyRetention: '7d',
  })
  assert.deepEqual(kind.spec, {
    attempts: 3,
    backoff: { type: 'linear', baseMs: 5_000, capMs: 60_000, jitter: 0 },
    timeoutMs: 20_000,
    ageLimitMs: 7_200_000,
    delivery: 'at-least-once',
    keep: 'failures',
    expiresInMs: 86_400_000,
  })
  assert.equal(kind.priority, 8)
  assert(Object.isFrozen(kind) && Object.isFrozen(kind.spec) && Object.isFrozen(kind.spec.backoff))
  assert.equal(kind.spec, kind.spec)
})

test('B97: a backoff without attempts keeps the default attempts, and the reverse', () => {
  const backoff = defineJob('kind', { retry: { backoff: { base: '1m' } } }).spec
  assert.equal(backoff.attempts, 6)
  assert.deepEqual(backoff.backoff, { type: 'exponential', baseMs: 60_000, factor: 2, capMs: 3_600_000, jitter: 0.25 })
  assert.deepEqual(defineJob('kind', { retry: { attempts: 2 } }).spec.backoff, SPEC_DEFAULTS.backoff)
})

test('names are checked by their rule', () => {
  for (const name of ['', 'a b', 'ä', 'x'.repeat(129)])
    assert.throws(() => defineJob(name), { code: 'INVALID_NAME', field: 'name' })
  refused({ queue: 'no spaces' }, 'INVALID_NAME', 'queue')
})

test('typos are refused with what was meant, at every level', () => {
  refused({ tiemout: '5s' }, 'UNKNOWN_OPTION', 'tiemout', /did you mean "timeout"/)
  refused({ retry: { atempts: 5 } }, 'UNKNOWN_OPTION', 'retry.atempts', /did you mean "attempts"/)
  refused({ retry: { backoff: { bse: 5 } } }, 'UNKNOWN_OPTION', 'retry.backoff.bse', /did you mean "base"/)
  refused({ priority: 'hihg' }, 'INVALID_OPTION', 'priority', /did you mean "high"/)
  refused({ delivery: 'exactly-once' }, 'INVALID_OPTION', 'delivery', /at-most-once/)
  assert.throws(() => defineJob('kind', 5 as never), { code: 'INVALID_OPTION' })
})

test('B43: numbers out of bounds are refused by field', () => {
  for (const bad of [Number.NaN, Infinity, 1e20, 0, -1, 1.5, '3', null]) {
    refused({ retry: { attempts: bad } }, 'INVALID_OPTION', 'retry.attempts')
    if (bad !== 1.5) refused({ timeout: bad }, 'INVALID_OPTION', 'timeout')
  }
  for (const bad of [Number.NaN, Infinity, 1e20, -1]) {
    refused({ retry: { backoff: { base: bad } } }, 'INVALID_OPTION', 'retry.backoff.base')
    refused({ retry: { backoff: { factor: bad } } }, 'INVALID_OPTION', 'retry.backoff.factor')
    refused({ retry: { backoff: { jitter: bad } } }, 'INVALID_OPTION', 'retry.backoff.jitter')
    refused({ expiresIn: bad }, 'INVALID_OPTION', 'expiresIn')
  }
})

test('B39: durations beyond 2^31 ms are durations', () => {
  assert.equal(defineJob('kind', { timeout: '30d', expiresIn: '400d' }).spec.timeoutMs, 2_592_000_000)
})

test('options that contradict each other are refused', () => {
  refused({ retry: { backoff: { base: '2h', cap: '1h' } } }, 'INVALID_OPTION', 'retry.backoff.cap')
  refused({ retry: { backoff: { type: 'fixed', factor: 2 } } }, 'INVALID_OPTION', 'retry.backoff.factor')
  refused({ retry: { backoff: { type: 'fixed', cap: '1h' } } }, 'INVALID_OPTION', 'retry.backoff.cap')
  refused({ delivery: 'at-most-once', retry: { attempts: 2 } }, 'INVALID_OPTION', 'retry')
  assert.equal(defineJob('kind', { delivery: 'at-most-once' }).spec.attempts, 1)
  const long = defineJob('kind', { retry: { backoff: { base: '2h' } } }).spec.backoff
  assert.equal(long.type === 'exponential' && long.capMs, 7_200_000, 'a default cap is never below the base')
})

test('schemas and functions have to be such', () => {
  for (const bad of [{}, 'x', null, { '~standard': {} }, (() => 5) as object])
    refused({ payload: bad }, 'INVALID_OPTION', 'payload')
  refused({ result: 5 }, 'INVALID_OPTION', 'result')
  refused({ idempotencyKey: 'x' }, 'INVALID_OPTION', 'idempotencyKey')
  assert.throws(() => defineJob('kind').handle(5 as never), { code: 'INVALID_OPTION' })
})

test('a payload is parsed by its schema: zod, valibot, and anything of that standard', async () => {
  const zod = defineJob('kind', { payload: z.object({ items: z.array(z.object({ n: z.number().default(1) })) }) })
  assert.deepEqual(zod.parse({ items: [{}] }), { items: [{ n: 1 }] })
  assert.throws(() => zod.parse({ items: [{ n: 'x' }] }), { code: 'INVALID_PAYLOAD', field: 'payload.items[0].n' })
  const valibot = defineJob('kind', { payload: v.object({ to: v.string() }) })
  assert.throws(() => valibot.parse({ to: 5 }), {
    code: 'INVALID_PAYLOAD',
    field: 'payload.to',
    message: /payload\.to: /,
  })
  const slow = defineJob('kind', { payload: z.string().refine(async (text) => text !== 'taken') })
  assert.equal(await slow.parse('free'), 'free')
  await assert.rejects(async () => slow.parse('taken'), { code: 'INVALID_PAYLOAD' })
})

test('an absent payload is null for the schema as for the store', () => {
  assert.equal(defineJob('kind').parse(undefined), null)
  assert.throws(() => defineJob('kind', { payload: z.string().optional() }).parse(undefined), {
    code: 'INVALID_PAYLOAD',
  })
  assert.equal(defineJob('kind', { payload: z.string().nullable() }).parse(undefined), null)
})

test('many issues are told in part, and a schema that throws is told with its cause', async () => {
  const wide = defineJob('kind', { payload: z.record(z.string(), z.number()) })
  const bad = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, 'x']))
  assert.throws(() => wide.parse(bad), /and 95 more/)
  const broken = new Error('broken')
  const throwing = { '~standard': { version: 1 as const, vendor: 'test', validate: () => Promise.reject(broken) } }
  await assert.rejects(async () => defineJob('kind', { payload: throwing }).parse(5), {
    code: 'INVALID_PAYLOAD',
    cause: broken,
  })
})

test('the key of a payload is made from its parsed form, and checked', () => {
  const kind = defineJob('kind', {
    payload: z.object({ email: z.string().transform((text) => text.toLowerCase()) }),
    idempotencyKey: ({ email }) => (email === '' ? undefined : email),
  })
  assert.equal(kind.keysOf(kind.parse({ email: 'ADA' })).idempotencyKey, 'ada')
  assert.equal(kind.keysOf(kind.parse({ email: '' })).idempotencyKey, undefined)
  const keyed = (key: unknown) => defineJob('kind', { idempotencyKey: () => key as string }).keysOf(null).idempotencyKey
  for (const bad of ['', 5, null, 'a\0', 'a\ud800', 'x'.repeat(1_025)])
    assert.throws(() => keyed(bad), { code: 'INVALID_OPTION', field: 'idempotencyKey' })
  assert.equal(keyed('x'.repeat(1_024)), 'x'.repeat(1_024))
  const throwing = defineJob<{ a: { b: string } }>('kind', { idempotencyKey: ({ a }) => a.b })
  assert.throws(() => throwing.keysOf({}), { code: 'INVALID_OPTION', field: 'idempotencyKey' })
})

test('a handler is bound with what the worker needs of its kind', async () => {
  const kind = defineJob<{ n: number }, number>('kind', { queue: 'q', delivery: 'at-most-once' })
  const handler = kind.handle(({ n }) => n + 1)
  assert.equal(handler.kind, 'kind')
  assert.equal(handler.queue, 'q')
  assert.equal(handler.delivery, 'at-most-once')
  assert.equal(handler.retryDelay, undefined)
  assert.equal(await handler.run({ n: 1 }, context), 2)
  assert(Object.isFrozen(handler))
})

test('a backoff of your own is asked with attempt and error, and answers in any duration', () => {
  const kind = defineJob('kind', { retry: { backoff: (attempt, error) => (error === 'slow' ? '1h' : attempt * 10) } })
  const { retryDelay } = kind.handle(() => {})
  assert.equal(retryDelay!(3, 'x'), 30)
  assert.equal(retryDelay!(3, 'slow'), 3_600_000)
  assert.deepEqual(kind.spec.backoff, SPEC_DEFAULTS.backoff, 'for who takes the job over without knowing the kind')
  const wild = defineJob('kind', { retry: { backoff: () => Number.NaN } }).handle(() => {})
  assert.throws(() => wild.retryDelay!(1, 'x'), { code: 'INVALID_OPTION' })
})

test('a result is checked by its schema and kept as the handler gave it; verdicts pass', async () => {
  const kind = defineJob('kind', { payload: z.string(), result: z.object({ id: z.string() }) })
  const result = { id: 'x' }
  assert.equal(await kind.handle(() => result).run('a', context), result)
  await assert.rejects(async () => kind.handle(() => ({ id: 5 as unknown as string })).run('a', context), {
    code: 'INVALID_RESULT',
    field: 'result.id',
  })
  const verdict = dead('no')
  assert.equal(await kind.handle(() => verdict).run('a', context), verdict)
})
