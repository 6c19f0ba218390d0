/** From what a caller asks for to the job that the store takes: checked, encoded, with id and policy. Called by the producer. */
import { checkDue, dueOf } from '../core/due.js'
import { encodeJson, PAYLOAD, payloadHash } from '../core/json.js'
import type { Kind, KindKeys } from '../core/kind.js'
import { specOfJob } from '../core/policy.js'
import type { NewJob } from '../storage/storage.js'
import type { HeldEnqueue } from './calls.js'

/** What chance decides, drawn by the caller. */
export interface Draw {
  id: string
  /** In [0, 1): the place in the spread. */
  fraction: number
}

/** The job; a promise where the schema is asynchronous. Throws INVALID_PAYLOAD, PAYLOAD_TOO_LARGE, INVALID_OPTION. */
export function prepare(
  kind: Kind<unknown, unknown>,
  payload: unknown,
  choices: HeldEnqueue,
  draw: Draw,
): NewJob | Promise<NewJob> {
  // Encoded in the caller's turn: what the caller does to the object later is not enqueued.
  const text = encodeJson(payload, PAYLOAD)
  const parsed = kind.parse(payload)
  if (!(parsed instanceof Promise)) return assembled(kind, text, parsed, choices, draw)
  return parsed.then((output: unknown) => assembled(kind, text, output, choices, draw))
}

function assembled(
  kind: Kind<unknown, unknown>,
  payload: string,
  parsed: unknown,
  choices: HeldEnqueue,
  draw: Draw,
): NewJob {
  const made = kind.keysOf(parsed)
  const key = choices.idempotencyKey ?? made.idempotencyKey
  checkDue(choices, choices.expiresIn ?? kind.spec.expiresInMs)
  const job: NewJob = {
    id: choices.id ?? draw.id,
    kind: kind.name,
    queue: choices.queue ?? kind.queue,
    priority: choices.priority ?? kind.priority,
    payload,
    spec: specOfJob(kind.spec, { ...choices, ...keysOf(kind, choices, made) }, key),
    due: dueOf(choices, draw.fraction),
  }
  if (choices.id !== undefined) job.chosen = true
  if (key !== undefined)
    job.idempotency = {
      key,
      payloadHash: payloadHash(kind.name, payload),
      retentionMs: choices.idempotencyRetention ?? kind.idempotencyRetentionMs,
    }
  return job
}

/** A job that names one of its keys itself has that one, whatever its kind would make. */
function keysOf(kind: Kind<unknown, unknown>, choices: HeldEnqueue, made: KindKeys) {
  const own = choices.orderKey !== undefined || choices.limitKey !== undefined
  const { orderKey, limitKey } = own ? choices : made
  const afterDead = choices.afterDead ?? (orderKey === undefined ? undefined : kind.afterDead)
  return { orderKey, limitKey, afterDead }
}
