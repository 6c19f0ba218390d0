/** What an error of the driver or the server means for a caller. Called by database.ts, connections.ts and enqueue.ts. */
import { QueueError } from '../../core/errors.js'

/**
 * `refused`: the server answered with an error, nothing was done. `unreachable`: the statement was surely not run.
 * `unknown`: it was sent and no answer came; it may have been done.
 */
export type FailureKind = 'refused' | 'unreachable' | 'unknown'

/** The session is over, or the server is in trouble: whether the commit before it went through is not known. */
const SESSION_STATES = /^(?:08|57P|58|XX|F0)/
const STATE = /^[0-9A-Z]{5}$/
/** Raised while connecting or before a statement is looked at. */
const UNREACHABLE_STATES = new Set(['57P03', '53300', '53400', '28P01', '28000', '3D000'])
const UNREACHABLE_CODES = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'])
/** The server only reads: it was demoted, or never was the one that writes. */
const READ_ONLY = '25006'
/** The server ends the session or cannot write now; a statement of this state was rolled back. */
const TEMPORARY_STATES = new Set([READ_ONLY, '53100', '53200', '57014', '40001', '40P01', '55P03'])
/** Statements that the server says it does not have, or has already: a pooler hands sessions around. */
const PREPARED_STATES = new Set(['26000', '42P05'])
/** "current transaction is aborted": of whoever had the connection before. */
const ABORTED = '25P02'
/** "cached plan must not change result type": the schema was upgraded since the statement was prepared. */
const STALE_PLAN = '0A000'

export function failureKind(error: unknown): FailureKind {
  const { code } = error as { code?: unknown }
  if (typeof code !== 'string') return 'unknown'
  if (UNREACHABLE_CODES.has(code) || UNREACHABLE_STATES.has(code)) return 'unreachable'
  // By the state and not by the severity, which is a word in the server's own language.
  return STATE.test(code) && !SESSION_STATES.test(code) ? 'refused' : 'unknown'
}

/** Whether the same statement may succeed later, unchanged: the fault lies with the server or its load, not with the data. */
export function isTemporary(error: unknown): boolean {
  if (failureKind(error) !== 'refused') return true
  return TEMPORARY_STATES.has((error as { code: string }).code)
}

/**
 * Whether a connection is of no more use after this error, and neither are those that were made before it. One that
 * answers read-only leads to a server that was demoted: behind the same address another one may write by now.
 */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error)
  return failureKind(error) !== 'refused' || state === READ_ONLY || state === STALE_PLAN
}

/** Nothing was done, and nothing will ever be by a prepared statement here: a pooler is between. */
export function isUnprepared(error: unknown): boolean {
  return PREPARED_STATES.has(sqlState(error) ?? '')
}

/** Nothing was done; prepared anew, on a new connection, the statement is right again. */
export function isStalePlan(error: unknown): boolean {
  return sqlState(error) === STALE_PLAN
}

/** The statement came into a transaction that somebody has left open on a shared connection; with that its effects are gone. */
export function isForeign(error: unknown): boolean {
  return error instanceof Foreign || sqlState(error) === ABORTED
}

export function sqlState(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && STATE.test(code) ? code : undefined
}

/** The error that callers see. Secrets of the URL are in none of the driver's messages that are passed on. */
export function queueError(error: unknown, doing: string, jobId?: string): QueueError {
  if (error instanceof QueueError) return error
  const said = messageOf(error)
  const more = { cause: error, ...(jobId === undefined ? {} : { jobId }) }
  const state = sqlState(error)
  if (state === '42P01' || state === '3F000' || state === '42883')
    return new QueueError('SCHEMA_MISSING', `${doing}: ${said}; run the migrations ("leasehold migrate")`, more)
  if (!isTemporary(error)) return new QueueError('STORE_REJECTED', `${doing}: the store refused it: ${said}`, more)
  return new QueueError('STORE_UNAVAILABLE', `${doing}: the store could not be used: ${said}`, more)
}

/** A call that was sent and has no answer: what became of it is not known. */
export class Unanswered extends Error {}

class Unreachable extends Error {
  readonly code = 'ECONNREFUSED'
}

/** As surely not done as what was never sent, once the connection has ended. */
class Foreign extends Unreachable {}

export function foreign(): Error {
  return new Foreign(
    'the connection was given back to the pool in the middle of a transaction; end it before release()',
  )
}

/** Of an error while connecting: nothing was sent yet, whatever it looks like. */
export function unreachable(error: unknown): Error {
  if (failureKind(error) === 'unreachable' && messageOf(error) === (error as Error).message) return error as Error
  return new Unreachable(messageOf(error), { cause: error })
}

/** All connections of a pool are in use, by handlers that share it for one. Nothing was sent. */
export function noneFree(waitedMs: number, connections: number): Error {
  return new Unreachable(`none of the ${connections} connections of the pool came free within ${waitedMs} ms`)
}

/** An address with several meanings (localhost) fails with one error for each, and no message of its own. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(messageOf).join('; ')
  return error.message
}
