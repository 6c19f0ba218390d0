/** What one job may say for itself, beside or against its kind. Read by the client for each job that says something. */
import { instant } from './due.js'
import { IDEMPOTENCY_KEY_BYTES_MAX } from './job.js'
import { type Check, duration, type Given, type Held, invalidOption, name, type OptionTable, text } from './options.js'
import {
  afterDead,
  expiresIn,
  idempotencyRetention,
  jobRetry,
  key,
  maxWait,
  priority,
  tenant,
  timeout,
  weight,
} from './policy.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Version 7 only: ids that rise with time keep the index of the store small and warm. */
const jobId: Check<string, string> = (value, field) => {
  const id = typeof value === 'string' ? value.toLowerCase() : ''
  if (UUID.test(id) && id[14] === '7') return id
  throw invalidOption(field, value, 'a UUID of version 7, as newJobId() makes it')
}

/** Choices that also a whole batch may make. */
export const SHARED_CHOICES = {
  /** Start no sooner than this from now. */
  delay: { check: duration() },
  /** Start no sooner than this instant: a Date, ISO text with an offset, or epoch ms. */
  runAt: { check: instant },
  /** Adds a random delay of up to this; the jobs of one batch are placed evenly over it. */
  spread: { check: duration() },
  /** Dead (expired) when not started this long after the enqueue, instead of what the kind says. */
  expiresIn: { check: expiresIn },
  /** A tier or 0 to 15, instead of the priority of the kind. */
  priority: { check: priority },
  /** Instead of the queue of the kind. */
  queue: { check: name },
  /** The longest one attempt may run, instead of the time-out of the kind. */
  timeout: { check: timeout },
  /** Attempts and backoff, instead of those of the kind. */
  retry: { check: jobRetry },
  /** Refused (WAIT_TOO_LONG) where it is expected to wait longer for its start, instead of what the kind says. */
  maxWait: { check: maxWait },
  /** Whose share of the queue it takes: the jobs of tenants take turns, however many one of them has waiting. */
  tenant: { check: tenant },
  /** How large the share of the tenant is, from 0.01 to 100; 1 unless given. */
  weight: { check: weight },
  /** Jobs of the queue with the same order key run one after another, in order, also across retries. */
  orderKey: { check: key },
  /** What a dead job does to those behind it in its order key: go on (unless given), or block them until it is redriven or discarded. */
  afterDead: { check: afterDead },
  /** Of jobs of the queue with the same limit key as many run at once as `queue.limit(…, { perKey })` says. */
  limitKey: { check: key },
} satisfies OptionTable

export const idempotencyKey = text(IDEMPOTENCY_KEY_BYTES_MAX)

/** All that one job may say. */
export const JOB_CHOICES = {
  ...SHARED_CHOICES,
  /** The meaning of the job in a word; one job is made for each key. */
  idempotencyKey: { check: idempotencyKey },
  /** How long the key is remembered, instead of what the kind says. */
  idempotencyRetention: { check: idempotencyRetention },
  /** The id of the job, made before by newJobId(). */
  id: { check: jobId },
} satisfies OptionTable

export type SharedChoices = Given<typeof SHARED_CHOICES>
/** What one job may choose for itself: when it starts, where it goes, and its policy. */
export type JobChoices = Given<typeof JOB_CHOICES>
export type HeldShared = Held<typeof SHARED_CHOICES>
export type HeldChoices = Held<typeof JOB_CHOICES>

/** An id that is looked up: any UUID, in small letters as stores keep it. */
export const knownJobId: Check<string, string> = (value, field) => {
  const id = typeof value === 'string' ? value.toLowerCase() : ''
  if (UUID.test(id)) return id
  throw invalidOption(field, value, 'the id of a job, a UUID')
}
