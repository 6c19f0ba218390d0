/** What an enqueue said to its caller, as a line of a log. Used by producers and the driver, which fills the backlog. */
import type { EnqueueResult, QueueError } from '../src/index.js'
import type { Said } from '../src/testing/checker/history.js'
import { MESSAGE_LENGTH_MAX } from '../src/testing/checker/told.js'

export type SaidOfEnqueue = Extract<Said, { what: 'told' }>

export function toldOf(n: number, result: EnqueueResult): SaidOfEnqueue {
  if (result.status === 'refused' || result.status === 'unknown') return refusalOf(n, result.error)
  return { what: 'told', n, outcome: result.status, id: result.id }
}

export function refusalOf(n: number, { code, jobId, message }: QueueError): SaidOfEnqueue {
  const id = jobId === undefined ? {} : { id: jobId }
  if (code === 'OUTCOME_UNKNOWN') return { what: 'told', n, outcome: 'unknown', code, ...id }
  return {
    what: 'told',
    n,
    outcome: 'refused',
    code: code === 'STORE_REJECTED' ? `${code}: ${message.slice(0, MESSAGE_LENGTH_MAX)}` : code,
  }
}
