/** Kinds of jobs: defined once, shared by the code that enqueues and the code that handles. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { idempotencyKey, type JobChoices } from './choices.js'
import { durationMs } from './duration.js'
import { QueueError } from './errors.js'
import { type BoundHandler, type HandlerContext, isVerdict, type Verdict } from './handler.js'
import { type JobSpec, SPEC_DEFAULTS, TIERS } from './job.js'
import { checkName } from './name.js'
import {
  type Check,
  callback,
  type Given,
  type Held,
  invalidOption,
  name,
  type OptionTable,
  oneOf,
  optionReader,
} from './options.js'
import {
  afterDead,
  ageLimit,
  expiresIn,
  idempotencyRetention,
  type KindRetry,
  key,
  kindRetry,
  maxWait,
  priority,
  specOfKind,
  timeout,
} from './policy.js'
import { type Subject, schema, validate } from './schema.js'

const POLICY_OPTIONS = {
  /** The queue its jobs go to; "default" unless given. */
  queue: { default: 'default', check: name },
  /** A tier (critical, high, normal, low) or 0 to 15, a higher one goes first; normal unless given. */
  priority: { default: TIERS.normal as number, check: priority },
  /** The longest one attempt may run; 5 minutes unless given. */
  timeout: { default: SPEC_DEFAULTS.timeoutMs, check: timeout },
  /** Attempts and backoff: six attempts over about a minute unless given. */
  retry: { check: kindRetry },
  /** A crash this long after the first start is not followed by another attempt; 24 hours unless given. */
  ageLimit: { default: SPEC_DEFAULTS.ageLimitMs, check: ageLimit },
  /** A job not started this long after its enqueue is dead (expired); never unless given. */
  expiresIn: { check: expiresIn },
  /** at-least-once unless given; at-most-once jobs are acknowledged before the handler runs, and never retried. */
  delivery: { default: SPEC_DEFAULTS.delivery, check: oneOf(['at-least-once', 'at-most-once']) },
  /** Which ends leave a record: all (unless given), failures, none. Dead letters are always kept. */
  keep: { default: SPEC_DEFAULTS.keep, check: oneOf(['all', 'failures', 'none']) },
  /** Refused (WAIT_TOO_LONG) where a job due now is expected to wait longer for its start; never unless given. */
  maxWait: { check: maxWait },
  /** What a dead job does to those behind it in its order key: go on (unless given), or block them until it is redriven or discarded. */
  afterDead: { check: afterDead },
  /** How long an idempotency key is remembered; 24 hours unless given. */
  idempotencyRetention: { default: 86_400_000, check: idempotencyRetention },
} satisfies OptionTable

const KIND_OPTIONS = {
  ...POLICY_OPTIONS,
  /** Validates payloads, at enqueue and again before the handler. */
  payload: { check: schema },
  /** Validates what the handler returns. It may not transform. */
  result: { check: schema },
  /** Makes the idempotency key of a payload. */
  idempotencyKey: { check: callback<(payload: never) => unknown>() },
  /** Makes the order key of a payload. */
  orderKey: { check: callback<(payload: never) => unknown>() },
  /** Makes the limit key of a payload. */
  limitKey: { check: callback<(payload: never) => unknown>() },
} satisfies OptionTable

const readOptions = optionReader(KIND_OPTIONS)
type HeldOptions = Held<typeof KIND_OPTIONS>

/** The options of `defineJob`. */
export interface KindOptions<In, Out, Result> extends Given<typeof POLICY_OPTIONS> {
  /**
   * A Standard Schema (zod, valibot, arktype, …). Producers give its input, which is stored as given once it has
   * passed; handlers get its output, parsed anew, so that defaults and transforms work.
   */
  payload?: StandardSchemaV1<In, Out>
  /** A Standard Schema of what the handler returns, without transforms. Types `job.result()` and checks the return. */
  result?: StandardSchemaV1<unknown, Result>
  /** The meaning of a payload in a word (`charge:pi_123`); one job is made for each. Undefined: no key. */
  idempotencyKey?: (payload: NoInfer<Out>) => string | undefined
  /** Whose turn it takes (`user:42`): jobs of the queue with the same one run one after another. Undefined: nobody's. */
  orderKey?: (payload: NoInfer<Out>) => string | undefined
  /** Whose permits it takes (`customer:7`): as many run at once as the queue allows for each. Undefined: nobody's. */
  limitKey?: (payload: NoInfer<Out>) => string | undefined
}

/** What a kind makes of a payload, to tell jobs apart. */
export interface KindKeys {
  idempotencyKey: string | undefined
  orderKey: string | undefined
  limitKey: string | undefined
}

/** What a handler may return: a result, or a verdict made by `retryAfter`, `snooze` or `dead`. */
export type Returned<Result> = Result | Verdict | Promise<Result | Verdict>

/** The payload, which may be left out where it may be undefined, and options. */
export type PayloadAnd<In, Options> = undefined extends In
  ? [payload?: In, options?: Options]
  : [payload: In, options?: Options]

/** A kind as producers need it. */
export interface Kind<In, Result> {
  readonly name: string
  readonly queue: string
  readonly priority: number
  /** The policy that travels with each job; one frozen object for all jobs that do not differ from their kind. */
  readonly spec: JobSpec
  readonly idempotencyRetentionMs: number
  /** Undefined: however long its jobs would wait. */
  readonly maxWaitMs: number | undefined
  /** For types only, never set. */
  readonly types?: { readonly payload: In; readonly result: Result }
  /** The payload as the handler gets it; a promise where the schema is asynchronous. Throws INVALID_PAYLOAD. */
  parse(payload: unknown): unknown
  /** What a dead job does to those behind it, where it does not say so itself. */
  readonly afterDead: 'go on' | 'block' | undefined
  /** The keys of a parsed payload. Throws INVALID_OPTION when one is no usable key. */
  keysOf(parsed: unknown): KindKeys
}

/** A job that is not enqueued yet, for `enqueueMany`. Made by `kind.with()`. */
export interface JobItem {
  readonly kind: Kind<unknown, unknown>
  readonly payload: unknown
  readonly options: JobChoices | undefined
}

/** What `defineJob` makes. `In` is what producers give, `Out` what the handler gets, `Result` what it returns. */
export interface JobKind<In, Out, Result> extends Kind<In, Result> {
  /** Binds a handler, for `worker()`. It gets the parsed payload and may return a result or a verdict. */
  handle(run: (payload: Out, context: HandlerContext) => Returned<Result>): BoundHandler
  /** One item for `enqueueMany`, with options of its own. */
  with(...args: PayloadAnd<In, JobChoices>): JobItem
}

const KIND = Symbol.for('leasehold.kind')
const PAYLOAD: Subject = { noun: 'payload', code: 'INVALID_PAYLOAD' }
const RESULT: Subject = { noun: 'result', code: 'INVALID_RESULT' }

/**
 * Defines a kind of job, once, for producers and workers:
 *
 *     export const sendEmail = defineJob('email.send', {
 *       payload: z.object({ to: z.email(), subject: z.string() }),
 *       queue: 'mail',
 *       retry: { attempts: 8, backoff: { base: '5s' } },
 *     })
 *     await queue.enqueue(sendEmail, { to: 'ada@example.com', subject: 'Hello' })
 *     worker(queue, [sendEmail.handle(async ({ to, subject }) => { … })])
 *
 * Without a schema, types do: `defineJob<{ to: string }>('email.send')`, or with a result
 * `defineJob<{ to: string }, { messageId: string }>('email.send')`. Without either the kind has no payload.
 *
 * Throws INVALID_NAME, UNKNOWN_OPTION or INVALID_OPTION, naming the field.
 */
export function defineJob<In = null | undefined, Result = unknown, Out = In>(
  kindName: string,
  options: KindOptions<In, Out, Result> = {},
): JobKind<In, Out, Result> {
  checkName(kindName, 'name')
  const held = readOptions(options)
  const spec = specOfKind(held)
  const parse = (payload: unknown): unknown => parsePayload(held, payload)
  const kind: JobKind<In, Out, Result> & { readonly [KIND]: true } = {
    [KIND]: true,
    name: kindName,
    queue: held.queue,
    priority: held.priority,
    spec,
    idempotencyRetentionMs: held.idempotencyRetention,
    maxWaitMs: held.maxWait,
    parse,
    afterDead: held.afterDead,
    keysOf: keysOf(held),
    handle: (run) => bound(kind, held, run as BoundHandler['run']),
    with: (...[payload, jobOptions]) => ({ kind, payload, options: jobOptions }),
  }
  return Object.freeze(kind)
}

/** Whether it came from `defineJob`, also that of another copy of this module. */
export function isKind(value: unknown): value is Kind<unknown, unknown> {
  return typeof value === 'object' && value !== null && (value as { [KIND]?: unknown })[KIND] === true
}

/** An absent payload is null, here as in the store, so that producer and worker validate the same. */
function parsePayload(held: HeldOptions, payload: unknown): unknown {
  const value = payload === undefined ? null : payload
  return held.payload === undefined ? value : validate(held.payload, value, PAYLOAD)
}

const NO_KEYS: KindKeys = Object.freeze({ idempotencyKey: undefined, orderKey: undefined, limitKey: undefined })

function keysOf(held: HeldOptions): (parsed: unknown) => KindKeys {
  if (held.idempotencyKey === undefined && held.orderKey === undefined && held.limitKey === undefined)
    return () => NO_KEYS
  return (parsed) => ({
    idempotencyKey: keyMade(held, 'idempotencyKey', idempotencyKey, parsed),
    orderKey: keyMade(held, 'orderKey', key, parsed),
    limitKey: keyMade(held, 'limitKey', key, parsed),
  })
}

function keyMade(
  held: HeldOptions,
  field: keyof KindKeys,
  check: Check<string, string>,
  parsed: unknown,
): string | undefined {
  const make = held[field]
  if (make === undefined) return undefined
  let made: unknown
  try {
    made = make(parsed as never)
  } catch (error) {
    throw new QueueError('INVALID_OPTION', `${field}: the function of the kind threw`, { cause: error, field })
  }
  return made === undefined ? undefined : check(made, field)
}

/** The types of payload and result end here: from now on the handler is one of many. */
function bound(kind: Kind<unknown, unknown>, held: HeldOptions, run: BoundHandler['run']): BoundHandler {
  if (typeof run !== 'function') throw invalidOption('handle(run)', run, 'a function')
  return Object.freeze({
    kind: kind.name,
    queue: kind.queue,
    delivery: kind.spec.delivery,
    retryDelay: retryDelay(held.retry),
    parse: kind.parse,
    run: held.result === undefined ? run : withResult(held.result, run),
  })
}

/** A retry function of the kind; what it answers is checked, and its faults are the worker's to bear. */
function retryDelay(retry: KindRetry | undefined): BoundHandler['retryDelay'] {
  const backoff = retry?.backoff
  if (typeof backoff !== 'function') return undefined
  return (attempt, error) => durationMs(backoff(attempt, error), 'retry.backoff()')
}

/** Checks what the handler returned. Kept is what it returned, not the schema's output: a transform would run once only. */
function withResult(resultSchema: StandardSchemaV1, run: BoundHandler['run']): BoundHandler['run'] {
  return async (payload, context) => {
    const returned = await run(payload, context)
    if (!isVerdict(returned)) await validate(resultSchema, returned, RESULT)
    return returned
  }
}
