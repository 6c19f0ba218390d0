/**
 * The conformance suite: what every store owes, as data. Run it against your own store with `runConformance`; each
 * case gets a fresh store of the factory's making.
 */
import { type ConformanceCase, lacking } from './case.js'
import { BEATS } from './cases/beat.js'
import { CAPACITY_CASES } from './cases/capacity.js'
import { CLAIMS } from './cases/claim.js'
import { CONTROL } from './cases/control.js'
import { CRASHES } from './cases/crash.js'
import { DEAD_LETTERS } from './cases/dead-letters.js'
import { DEPTH_CASES } from './cases/depth.js'
import { ENQUEUE } from './cases/enqueue.js'
import { FACTS } from './cases/facts.js'
import { INSPECTION } from './cases/inspect.js'
import { INTAKE_CASES } from './cases/intake.js'
import { JOB_KEY_CASES } from './cases/job-keys.js'
import { KEYS } from './cases/keys.js'
import { LIMIT_CASES } from './cases/limits.js'
import { MATCHES } from './cases/match.js'
import { MOVED_ON } from './cases/moved-on.js'
import { ORDER } from './cases/order.js'
import { PAYLOADS } from './cases/payload.js'
import { RETENTION } from './cases/retention.js'
import { SETTLEMENTS } from './cases/settle.js'
import { SUSPECT_CASES } from './cases/suspect.js'
import { TAKE_OVERS } from './cases/take-over.js'
import { TENANT_CASES } from './cases/tenants.js'
import { UPKEEP } from './cases/upkeep.js'
import { WALKS } from './cases/walk.js'
import { Kit, type StoreFactory } from './kit.js'

export type { ConformanceCase, Facet } from './case.js'
export { type JobSketch, Kit, type StoreFactory, type StoreUnderTest } from './kit.js'
export { type Held, TestWorker } from './worker.js'

/** All cases of the conformance suite, as data. */
export const CASES: readonly ConformanceCase[] = [
  ...ENQUEUE,
  ...KEYS,
  ...PAYLOADS,
  ...CLAIMS,
  ...ORDER,
  ...JOB_KEY_CASES,
  ...TENANT_CASES,
  ...LIMIT_CASES,
  ...DEPTH_CASES,
  ...INTAKE_CASES,
  ...CAPACITY_CASES,
  ...BEATS,
  ...SETTLEMENTS,
  ...TAKE_OVERS,
  ...CRASHES,
  ...SUSPECT_CASES,
  ...UPKEEP,
  ...RETENTION,
  ...CONTROL,
  ...DEAD_LETTERS,
  ...MOVED_ON,
  ...INSPECTION,
  ...FACTS,
  ...MATCHES,
  ...WALKS,
]

/** How a case came out. It rejects when the store breaks the promise. */
export type CaseResult = { status: 'passed' } | { status: 'skipped'; reason: string }

/** Runs one case on a fresh store. Rejects with what was found wrong. */
export async function runCase(conformanceCase: ConformanceCase, factory: StoreFactory): Promise<CaseResult> {
  const kit = await Kit.over(factory)
  try {
    const facet = lacking(kit.store, conformanceCase)
    if (facet !== undefined) return { status: 'skipped', reason: `the store has no ${facet}` }
    await conformanceCase.run(kit)
    return { status: 'passed' }
  } finally {
    await kit.close()
  }
}

/** `test` of node:test, vitest and others. */
export type TestFunction = (name: string, run: (context: { skip(reason?: string): void }) => Promise<void>) => unknown

/** Declares one test for each case. `only` picks cases by a part of their name. */
export function runConformance(factory: StoreFactory, { test, only }: { test: TestFunction; only?: string }): void {
  for (const conformanceCase of CASES.filter(({ name }) => name.includes(only ?? ''))) {
    test(conformanceCase.name, async (context) => {
      const result = await runCase(conformanceCase, factory)
      if (result.status === 'skipped') context.skip(result.reason)
    })
  }
}
