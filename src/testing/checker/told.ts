/**
 * What an event of the client or the worker says, as a line of a history. The one translation: whoever writes a history
 * of events calls it, and passes over what it writes by itself. Used by chaos, by the simulator, by verify and for
 * recorded logs.
 */
import type { QueueEvent } from '../../observe/events.js'
import type { Said, Settled, WorkerState } from './history.js'

/** Told once the store has confirmed it. */
const SETTLED: Partial<Record<QueueEvent['type'], Settled>> = {
  'job.completed': 'completed',
  'job.dead': 'dead',
  'job.cancelled': 'cancelled',
  'job.failed': 'failed',
  'job.timed out': 'timed out',
  'job.snoozed': 'snoozed',
  'job.given back': 'given back',
  'job.lost': 'lost',
}

const STATES: Partial<Record<QueueEvent['type'], WorkerState>> = {
  'worker.written off': 'written off',
  'worker.leases lost': 'leases lost',
  'worker.draining': 'draining',
  'worker.stopped': 'stopped',
}

/** A history is no place for the whole text of an error. */
export const MESSAGE_LENGTH_MAX = 300

/** Undefined for what no rule reads, and for what is told by somebody else: starts by handlers, answers by operators. */
export function saidOf(event: QueueEvent): Said | undefined {
  const as = SETTLED[event.type]
  if (as !== undefined && 'jobId' in event) return settled(event, as)
  const is = STATES[event.type]
  if (is !== undefined && 'worker' in event) return { what: 'worker', worker: event.worker!, is }
  switch (event.type) {
    case 'job.claimed': {
      const { jobId: id, worker = '', fence, queue, kind, attempt = 1, waitedMs } = event
      return { what: 'claimed', id, worker, fence, queue, kind, attempt, waitedMs }
    }
    case 'job.crashed': {
      const { jobId: id, deadWorker, started, alone } = event
      return { what: 'crash noted', id, deadWorker, started, alone }
    }
    case 'job.expired':
      return { what: 'expired', id: event.jobId }
    case 'worker.started':
      return { what: 'worker', worker: event.worker, is: 'up', slots: event.concurrency }
    case 'worker.loop blocked':
      return { what: 'worker', worker: event.worker, is: 'blocked', ms: event.blockedMs }
    case 'worker.took over': {
      const { worker, deadWorker, jobs } = event
      return { what: 'took over', worker, deadWorker, jobs }
    }
    case 'store.unavailable': {
      const message = event.error.message.slice(0, MESSAGE_LENGTH_MAX)
      return { what: 'trouble', operation: event.operation, message }
    }
    default:
      return undefined
  }
}

function settled(
  event: QueueEvent & { jobId: string; worker?: string; attempt?: number },
  as: Settled,
): Said | undefined {
  // One that waits is cancelled by the operator, whose own answer says so.
  if (as === 'cancelled' && event.worker === undefined) return undefined
  const againInMs = 'retryInMs' in event ? event.retryInMs : 'delayMs' in event ? event.delayMs : undefined
  return {
    what: 'settled',
    id: event.jobId,
    worker: event.worker ?? '',
    as,
    ...(event.attempt === undefined ? {} : { attempt: event.attempt }),
    ...(event.type === 'job.dead' ? { reason: event.reason } : {}),
    ...(againInMs === undefined ? {} : { againInMs }),
  }
}
