/** What compiles and what must not: payloads, results and options flow from the kind without a cast. Never run. */
import type pg from 'pg'
import * as v from 'valibot'
import { z } from 'zod'
import type { Job } from '../../src/client/job.js'
import type { Queue } from '../../src/client/queue.js'
import { dead, retryAfter } from '../../src/core/handler.js'
import { defineJob, type JobItem } from '../../src/core/kind.js'

declare const queue: Queue

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(_equal: Equal<A, B>): void {}

const zodKind = defineJob('webhook.deliver', {
  payload: z.object({ deliveryId: z.uuid(), url: z.url(), event: z.string() }),
  queue: 'webhooks',
  priority: 'high',
  timeout: '20s',
  retry: { attempts: 6, backoff: { base: '2s', cap: '1h' } },
  idempotencyKey: (payload) => {
    same<typeof payload, { deliveryId: string; url: string; event: string }>(true)
    return `webhook:${payload.deliveryId}`
  },
})

const transformed = defineJob('report', {
  payload: z.object({ at: z.iso.datetime().transform((text) => new Date(text)), pages: z.number().default(1) }),
  result: z.object({ url: z.string() }),
})

const valibotKind = defineJob('valibot', { payload: v.object({ to: v.pipe(v.string(), v.email()) }) })
const typed = defineJob<{ to: string }, { messageId: string }>('email.send')
const bare = defineJob('cleanup')

export async function payloads(): Promise<void> {
  const payload = { deliveryId: 'x', url: 'y', event: 'z' }
  await queue.enqueue(zodKind, payload, { delay: '15m' })
  await queue.enqueue(bare)
  await queue.enqueue(bare, null, { delay: 5 })
  await queue.enqueue(typed, { to: 'a' })
  await queue.enqueue(valibotKind, { to: 'a' })
  await queue.enqueue(transformed, { at: '2030-01-01T00:00:00Z' })

  // @ts-expect-error a property is missing
  await queue.enqueue(zodKind, { deliveryId: 'x', url: 'y' })
  // @ts-expect-error a property is mistyped
  await queue.enqueue(typed, { to: 5 })
  // @ts-expect-error a property that the payload does not have
  await queue.enqueue(typed, { to: 'a', cc: 'b' })
  // @ts-expect-error the payload is missing
  await queue.enqueue(typed)
  // @ts-expect-error this kind has no payload
  await queue.enqueue(bare, { to: 'a' })
  // @ts-expect-error producers give the input of the schema, not its output
  await queue.enqueue(transformed, { at: new Date(), pages: 1 })
  // @ts-expect-error a kind, not its name
  await queue.enqueue('email.send', { to: 'a' })
  // @ts-expect-error a mistyped option
  await queue.enqueue(typed, { to: 'a' }, { dealy: '15m' })
  // @ts-expect-error no such tier
  await queue.enqueue(typed, { to: 'a' }, { priority: 'urgent' })
}

export async function results(): Promise<void> {
  const job = await queue.enqueue(typed, { to: 'a' })
  same<typeof job, Job<{ messageId: string }>>(true)
  const { messageId } = await job.result({ timeout: '30s' })
  same<typeof messageId, string>(true)
  const report = await (await queue.enqueue(transformed, { at: '2030-01-01T00:00:00Z' })).result()
  same<typeof report, { url: string }>(true)
  const unknown = await (await queue.enqueue(zodKind, { deliveryId: 'x', url: 'y', event: 'z' })).result()
  same<typeof unknown, unknown>(true)
  same<
    Awaited<ReturnType<ReturnType<typeof queue.job<{ to: string }, { messageId: string }>>['result']>>,
    { messageId: string }
  >(true)
  const again = queue.job(typed, job.id)
  same<typeof again, Job<{ messageId: string }>>(true)
}

export function handlers(): unknown[] {
  return [
    zodKind.handle(async (payload, { signal, attempt, fence, log, progress }) => {
      same<typeof payload, { deliveryId: string; url: string; event: string }>(true)
      log('sending', { attempt, fence, stopped: signal.aborted })
      progress({ done: 1 })
    }),
    transformed.handle(async (payload) => {
      same<typeof payload, { at: Date; pages: number }>(true)
      return { url: payload.at.toISOString() }
    }),
    typed.handle(async ({ to }) => (to === '' ? dead('no address') : { messageId: to })),
    typed.handle(({ to }) => (to === '' ? retryAfter('5s') : { messageId: to })),
    bare.handle(() => {}),
    // @ts-expect-error the result lacks messageId
    typed.handle(async () => ({ id: 'x' })),
    // @ts-expect-error the result is missing
    typed.handle(async () => {}),
    // @ts-expect-error the payload has no such property
    typed.handle(async ({ cc }) => ({ messageId: cc })),
    // @ts-expect-error the result of the schema is an object with a url
    transformed.handle(() => 'https://…'),
  ]
}

export function kinds(): unknown[] {
  return [
    // @ts-expect-error a mistyped option
    defineJob('x', { tiemout: '5s' }),
    // @ts-expect-error a mistyped option inside
    defineJob('x', { retry: { atempts: 5 } }),
    // @ts-expect-error no such delivery
    defineJob('x', { delivery: 'exactly-once' }),
    // @ts-expect-error a duration is a number or a text
    defineJob('x', { timeout: true }),
    defineJob('x', { retry: { backoff: (attempt, error) => (error instanceof RangeError ? '1h' : attempt * 1_000) } }),
    defineJob('x', { payload: z.object({ a: z.string() }), idempotencyKey: ({ a }) => (a === '' ? undefined : a) }),
    // @ts-expect-error a key is a text
    defineJob('x', { payload: z.object({ a: z.string() }), idempotencyKey: () => 5 }),
  ]
}

export async function many(): Promise<void> {
  const items: JobItem[] = [typed.with({ to: 'a' }, { delay: '1h' }), bare.with()]
  for (const result of await queue.enqueueMany(items, { spread: '10m' }))
    if (result.status === 'created') void result.id
  // @ts-expect-error a mistyped payload
  typed.with({ too: 'a' })
  // @ts-expect-error payloads alone do not say their kind
  await queue.enqueueMany([{ to: 'a' }])
  // @ts-expect-error a key belongs to one job
  await queue.enqueueMany(items, { idempotencyKey: 'x' })
}

export async function transactions(client: pg.Client, pooled: pg.PoolClient): Promise<void> {
  await queue.enqueue(typed, { to: 'a' }, { tx: client })
  await queue.enqueueMany([typed.with({ to: 'a' })], { tx: pooled })
  // @ts-expect-error no client of a transaction
  await queue.enqueue(typed, { to: 'a' }, { tx: {} })
  // @ts-expect-error an id is a text
  await queue.enqueue(typed, { to: 'a' }, { id: 5 })
}

export async function operations(): Promise<void> {
  const one = await queue.cancel('id')
  same<typeof one, 'cancelled' | 'signalled' | 'ended' | 'unknown'>(true)
  const several = await queue.redrive(['id'], { force: true })
  same<typeof several, ('ok' | 'needs force' | 'not dead' | 'unknown')[]>(true)
  const why = await queue.explain('id')
  const first = why!.clauses[0]
  if (first.code === 'not due') same<typeof first.dueAt, number>(true)
  // @ts-expect-error no such clause
  if (first.code === 'late') return
  // @ts-expect-error the state is needed
  await queue.list({ queue: 'mail' })
  // @ts-expect-error no such state
  await queue.list({ state: 'failed' })
}

export async function bulk(): Promise<void> {
  const { groups } = await queue.deadGroups({ queue: 'mail' })
  await queue.redriveAll({ fingerprint: groups[0]!.fingerprint, olderThan: '1h' }, { rate: 50, force: true })
  const { answers } = await queue.cancelAll({ queue: 'mail', state: ['ready', 'running'] }, { dryRun: true })
  same<(typeof answers)['signalled'], number | undefined>(true)
  // @ts-expect-error a mistyped reason
  await queue.redriveAll({ reason: 'fail' })
  // @ts-expect-error ended jobs cannot be cancelled
  await queue.cancelAll({ state: 'completed' })
  // @ts-expect-error force is for redrives
  await queue.discardAll({ queue: 'mail' }, { force: true })
  // @ts-expect-error no such answer
  void answers.redriven
}
