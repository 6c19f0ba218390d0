/** The options of worker(): one table, its defaults, checks and docs. Read once when a worker is made. */
import { hostname } from 'node:os'
import { QueueError } from '../core/errors.js'
import type { BoundHandler } from '../core/handler.js'
import { isKind } from '../core/kind.js'
import {
  badRelation,
  type Check,
  duration,
  flag,
  type Given,
  invalidOption,
  name,
  type OptionTable,
  optionReader,
  text,
  whole,
} from '../core/options.js'
import type { Retention } from '../storage/storage.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Pruning by count walks over the index entries of all that is kept, each minute. */
const KEPT_MAX = 1_000_000

type Queues = readonly string[] | Readonly<Record<string, number>>

export interface QueueWeight {
  queue: string
  weight: number
}

export const WORKER_OPTIONS = {
  name: {
    check: text(256),
    doc: 'What people see of this worker; host and process id by default.',
  },
  concurrency: {
    default: 10,
    check: whole({ min: 1, max: 10_000 }),
    doc: 'How many jobs run at once: the cores for computing, 10 to 50 times as many for work that waits.',
  },
  queues: {
    check: queueWeights as Check<Queues, QueueWeight[]>,
    doc: 'Queues to work on, or weights between them ({ mail: 3, reports: 1 }); those of the handlers by default.',
  },
  lease: {
    default: 10_000,
    check: duration({ minMs: 100, maxMs: 12 * HOUR_MS }),
    doc: 'How long after its last beat a worker is written off and its jobs are taken over.',
  },
  beat: {
    default: 3_000,
    check: duration({ minMs: 1, maxMs: 4 * HOUR_MS }),
    doc: 'How often the worker tells the store that it lives; less than half of the lease.',
  },
  poll: {
    default: 5_000,
    check: duration({ minMs: 10, maxMs: HOUR_MS }),
    doc: 'How often an idle worker asks for jobs when no hint comes; once a second at least where the store has no hints.',
  },
  shutdownGrace: {
    default: 25_000,
    check: duration({ maxMs: DAY_MS }),
    doc: 'How long running jobs may go on after a stop; then they are aborted and given back. Below the 30 s of Kubernetes.',
  },
  prefetchWindow: {
    default: 100,
    check: duration({ maxMs: 10_000 }),
    doc: 'Jobs that will start within it are claimed ahead; 0 claims for free slots only.',
  },
  claimBatch: {
    default: 500,
    check: whole({ min: 1, max: 500 }),
    doc: 'How many jobs one claim may bring.',
  },
  signals: {
    default: true,
    check: flag,
    doc: 'Whether run() handles SIGTERM and SIGINT: the first drains, the second ends at once.',
  },
  upkeep: {
    default: true,
    check: flag,
    doc: 'Whether this worker takes its part in take-over, promotion and pruning, as every worker may.',
  },
  completedRetention: {
    default: DAY_MS,
    check: duration({ maxMs: 3_650 * DAY_MS }),
    doc: 'How long records of completed and cancelled jobs are kept, where this worker prunes.',
  },
  deadRetention: {
    default: 30 * DAY_MS,
    check: duration({ maxMs: 3_650 * DAY_MS }),
    doc: 'How long dead letters are kept, where this worker prunes.',
  },
  completedMax: {
    check: whole({ min: 0, max: KEPT_MAX }),
    doc: 'How many records of completed jobs each queue keeps at most, and as many of cancelled ones: the newest, where this worker prunes. No limit unless given.',
  },
  deadMax: {
    check: whole({ min: 0, max: KEPT_MAX }),
    doc: 'How many dead letters each queue keeps at most: the newest, where this worker prunes. No limit unless given.',
  },
} satisfies OptionTable

/** The options of `worker()`; each with its default in docs/reference/options.md. */
export type WorkerOptions = Given<typeof WORKER_OPTIONS>

const read = optionReader(WORKER_OPTIONS)

export interface WorkerSettings {
  readonly name: string
  readonly concurrency: number
  readonly queues: readonly QueueWeight[]
  readonly leaseMs: number
  readonly beatMs: number
  readonly pollMs: number
  readonly graceMs: number
  readonly prefetchWindowMs: number
  readonly claimBatch: number
  readonly signals: boolean
  readonly upkeep: boolean
  readonly retention: Retention
}

export function readWorkerOptions(given: WorkerOptions | undefined, handlers: Iterable<BoundHandler>): WorkerSettings {
  const held = read(given)
  if (held.beat * 2 >= held.lease)
    throw badRelation(
      'beat',
      `${held.beat} ms is too long for a lease of ${held.lease} ms; less than half of it is needed`,
    )
  return {
    name: held.name ?? `${hostname()}/${process.pid}`,
    concurrency: held.concurrency,
    queues: held.queues ?? [...new Set([...handlers].map(({ queue }) => queue))].map((queue) => ({ queue, weight: 1 })),
    leaseMs: held.lease,
    beatMs: held.beat,
    pollMs: held.poll,
    graceMs: held.shutdownGrace,
    prefetchWindowMs: held.prefetchWindow,
    claimBatch: held.claimBatch,
    signals: held.signals,
    upkeep: held.upkeep,
    retention: {
      completedMs: held.completedRetention,
      deadMs: held.deadRetention,
      completedMax: held.completedMax,
      deadMax: held.deadMax,
    },
  }
}

/** By kind. Throws DUPLICATE_HANDLER, or INVALID_OPTION when there is none or one of them is none. */
export function readHandlers(handlers: readonly BoundHandler[]): Map<string, BoundHandler> {
  if (!Array.isArray(handlers)) throw invalidOption('handlers', handlers, 'an array of handlers')
  if (handlers.length === 0) throw badRelation('handlers', 'give at least one handler')
  const byKind = new Map<string, BoundHandler>()
  for (const [i, handler] of handlers.entries()) {
    if (!isHandler(handler)) throw noHandler(`handlers[${i}]`, handler)
    if (byKind.has(handler.kind))
      throw new QueueError('DUPLICATE_HANDLER', `two handlers were given for the kind "${handler.kind}"`)
    byKind.set(handler.kind, handler)
  }
  return byKind
}

function isHandler(value: unknown): value is BoundHandler {
  return typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function'
}

function noHandler(field: string, value: unknown): QueueError {
  if (isKind(value))
    return badRelation(field, `the kind "${value.name}" is given without a handler; give kind.handle(fn)`)
  return invalidOption(field, value, 'what kind.handle(fn) makes')
}

const WEIGHT_MAX = 1_000

function queueWeights(value: unknown, field: string): QueueWeight[] {
  const weights = Array.isArray(value)
    ? [...new Set(value)].map((queue, i) => ({ queue: name(queue, `${field}[${i}]`), weight: 1 }))
    : Object.entries(typeof value === 'object' && value !== null ? value : {}).map(([queue, weight]) => {
        if (typeof weight === 'number' && weight > 0 && weight <= WEIGHT_MAX)
          return { queue: name(queue, field), weight }
        throw invalidOption(`${field}.${queue}`, weight, `a weight above 0, up to ${WEIGHT_MAX}`)
      })
  if (weights.length === 0) throw invalidOption(field, value, 'queue names, or an object of weights, not empty')
  return weights
}
