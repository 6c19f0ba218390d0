/** The promises of the suite in groups that people look for, each with what became of its cases. Pure. Called by verify.ts. */
import type { JudgedCase } from './suite.js'

export type PromiseVerdict = 'kept' | 'broken' | 'not judged'

export interface JudgedPromise {
  promise: string
  verdict: PromiseVerdict
  /** The cases that hold the store to it; `why` where one did not go well. */
  cases: { name: string; verdict: PromiseVerdict; why?: string }[]
}

export interface PromiseGroup {
  group: string
  promises: JudgedPromise[]
}

/** By the first word of a case's name. Words that are not here stand for themselves, at the end. */
const GROUPS: readonly [group: string, words: readonly string[]][] = [
  ['Enqueue', ['enqueue']],
  ['Idempotency keys', ['keys']],
  ['Payloads', ['payload']],
  ['Claims', ['claim']],
  ['Order', ['order']],
  ['Leases', ['beat', 'unregister']],
  ['Ends of jobs', ['settle', 'walk']],
  ['Take-over', ['take over']],
  ['Crashes', ['suspect']],
  ['Due and expired', ['promote', 'expire']],
  ['Retention', ['prune']],
  ['Steering', ['cancel', 'retry', 'control', 'purge', 'pause', 'drain']],
  ['Dead letters', ['redrive', 'discard', 'deadGroups']],
  ['Looking', ['get', 'list', 'match', 'counts', 'facts', 'queues', 'workers']],
  ['Order and limit keys', ['job keys']],
  ['Fair shares', ['tenants']],
  ['Limits', ['limits', 'depth', 'intake', 'capacity']],
  ['Hints', ['wake']],
]

export function groupedPromises(cases: readonly JudgedCase[]): PromiseGroup[] {
  const words = cases.map(({ name }) => firstWord(name))
  const known = new Set(GROUPS.flatMap(([, own]) => own))
  const others = [...new Set(words)].filter((word) => !known.has(word)).map((word) => [word, [word]] as const)
  return [...GROUPS, ...others]
    .map(([group, own]) => ({ group, promises: promisesOf(cases.filter((_, i) => own.includes(words[i]!))) }))
    .filter(({ promises }) => promises.length > 0)
}

function firstWord(name: string): string {
  return name.split(':')[0]!
}

function promisesOf(cases: readonly JudgedCase[]): JudgedPromise[] {
  const bySentence = new Map<string, JudgedCase[]>()
  for (const one of cases) bySentence.set(one.promise, [...(bySentence.get(one.promise) ?? []), one])
  return [...bySentence].map(([promise, own]) => ({
    promise,
    verdict: worst(own),
    cases: own.map((one) => ({
      name: one.name,
      verdict: one.verdict,
      ...(one.verdict === 'kept' ? {} : { why: one.why }),
    })),
  }))
}

/** A promise that no case could judge was not judged; one that some kept and none broke is kept. */
function worst(cases: readonly JudgedCase[]): PromiseVerdict {
  if (cases.some(({ verdict }) => verdict === 'broken')) return 'broken'
  return cases.some(({ verdict }) => verdict === 'kept') ? 'kept' : 'not judged'
}
