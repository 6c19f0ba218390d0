/**
 * The rules of the checker that the drills give nothing to judge, and why: every other one has to have judged something,
 * or the drills have shown less than they say. Read by the report of verify.
 */
import type { RuleCount } from '../checker/check.js'

const NO_OPERATOR = 'nobody cancels, discards, pauses or drains in a drill'
const NO_EXPIRY = 'no job of a drill expires'
const NO_CALLS = 'its workers write down no calls of claims'
const NO_PACE = 'nothing is measured around its faults; chaos does that'

export const UNFED_RULES: Readonly<Record<string, string>> = {
  'a rollback leaves nothing': 'no job of a drill is enqueued in a transaction',
  'a refusal leaves nothing': 'no enqueue of a drill is refused',
  'a draining queue takes nothing': NO_OPERATOR,
  'dead after exactly its attempts': 'each hopeless job is redriven; their drill judges it',
  'lost only with a dead worker': 'no job of a drill is at most once',
  'at most once': 'no job of a drill is at most once',
  'a wait is kept': 'what fails waits for too short a time',
  'what expired never ran': NO_EXPIRY,
  'nothing starts after its expiry': NO_EXPIRY,
  'nothing runs after its cancel': NO_OPERATOR,
  'a cancelled job is cancelled': NO_OPERATOR,
  'a discarded job is gone': NO_OPERATOR,
  'nobody judges right after an outage': 'the store has no outage',
  'throughput comes back': NO_PACE,
  'whoever is up consumes': NO_PACE,
  'what is missing was purged': NO_OPERATOR,
  'a later claim has a larger fence': NO_CALLS,
  'a paused queue begins nothing': NO_OPERATOR,
  'first due, first claimed': NO_CALLS,
  'no lower level goes first': NO_CALLS,
  'only jobs due before its ageing go first': NO_CALLS,
  'tenants take turns': NO_CALLS,
  'a queue keeps to its limit': 'no queue of a drill has limits',
}

/** Those that have judged nothing, and should have. */
export function idleRules(rules: readonly RuleCount[]): string[] {
  return rules.filter(({ rule, judged }) => judged === 0 && !(rule in UNFED_RULES)).map(({ rule }) => rule)
}
