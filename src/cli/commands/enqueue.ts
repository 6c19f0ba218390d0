/** `leasehold enqueue`: one job, or many from lines of stdin. Called by the declarations in syntax/. */
import type { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import type { Priority } from '../../core/job.js'
import { defineJob, type JobKind } from '../../core/kind.js'
import type { Answer } from '../answer.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { readStdin } from '../stdin.js'
import { enqueueLines } from './enqueue-lines.js'

export interface EnqueueChoice {
  queue?: string
  priority?: Priority
  delay?: string
  at?: string
  attempts?: number
  timeout?: string
  orderKey?: string
  limitKey?: string
  tenant?: string
  key?: string
  id?: string
  stdinLines?: true
}

/** A kind of which only the name is known: its worker checks the payload. */
export type UnknownKind = JobKind<unknown, unknown, unknown>

export async function enqueue(
  invocation: Invocation,
  kindName: string,
  payload: string | undefined,
  choice: EnqueueChoice,
): Promise<Answer> {
  const kind: UnknownKind = defineJob<unknown, unknown>(kindName)
  if (choice.stdinLines) return enqueueLines(invocation, kind, payload, choice)
  const value = await payloadOf(payload)
  const queue = await invocation.store({}, 'may be made')
  return enqueueOne(queue, kind, value, choice)
}

/** What may be said of each of many jobs; the key and the id are one job's own. */
export function sharedOptions(choice: EnqueueChoice): {
  queue?: string
  priority?: Priority
  delay?: string
  runAt?: string
  retry?: { attempts: number }
  timeout?: string
  orderKey?: string
  limitKey?: string
  tenant?: string
} {
  const { queue, priority, delay, at, attempts, timeout, orderKey, limitKey, tenant } = choice
  return {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(delay === undefined ? {} : { delay }),
    ...(at === undefined ? {} : { runAt: at }),
    ...(attempts === undefined ? {} : { retry: { attempts } }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(orderKey === undefined ? {} : { orderKey }),
    ...(limitKey === undefined ? {} : { limitKey }),
    ...(tenant === undefined ? {} : { tenant }),
  }
}

/** Throws INVALID_PAYLOAD where it is not JSON. */
export function parsePayload(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = text.startsWith("'") ? '; the single quotes are part of it, and this shell may not take them off' : ''
    throw new QueueError('INVALID_PAYLOAD', `${where} is not JSON: ${(error as Error).message}${hint}`, {
      cause: error,
      field: 'payload',
    })
  }
}

async function payloadOf(given: string | undefined): Promise<unknown> {
  if (given === undefined) return undefined
  return given === '-' ? parsePayload(await readStdin(), 'stdin') : parsePayload(given, 'the payload')
}

async function enqueueOne(queue: Queue, kind: UnknownKind, payload: unknown, choice: EnqueueChoice): Promise<Answer> {
  const { key, id } = choice
  const job = await queue.enqueue(kind, payload, {
    ...sharedOptions(choice),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(id === undefined ? {} : { id }),
  })
  const status = job.duplicate ? 'duplicate' : 'created'
  const told = job.duplicate ? 'there already, by its key:' : 'enqueued'
  return {
    document: { id: job.id, kind: job.kind, queue: job.queue, status },
    text: () => `${told} ${job.id} (${job.kind} in queue ${job.queue})`,
  }
}

export function refuseSingleJobOptions(payload: string | undefined, { key, id }: EnqueueChoice): void {
  const given = [payload !== undefined && 'a payload', key !== undefined && '--key', id !== undefined && '--id']
  const found = given.find((word) => word !== false)
  if (found !== undefined) throw new CommandError('USAGE', `--stdin-lines makes many jobs; ${found} is of one job only`)
}
