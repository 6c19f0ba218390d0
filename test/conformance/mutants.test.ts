/**
 * A check must be able to fail: stores that are broken in one way each, and the cases that have to notice. A case that
 * passes on its mutant proves nothing on a real store.
 */
import { AssertionError, strict as assert } from 'node:assert'
import { test } from 'node:test'
import type { MemoryOptions } from '../../src/storage/memory/index.js'
import { CASES, memoryFactory, runCase } from '../../src/testing/index.js'
import { Broken } from './mutant.js'
import { MUTANTS_OF_DEAD } from './mutants-of-dead.js'
import { MUTANTS_OF_DEPTH } from './mutants-of-depth.js'
import { MUTANTS_OF_FACTS } from './mutants-of-facts.js'
import { MUTANTS_OF_INTAKE } from './mutants-of-intake.js'
import { MUTANTS_OF_JOB_KEYS } from './mutants-of-job-keys.js'
import { MUTANTS_OF_KEEPING } from './mutants-of-keeping.js'
import { MUTANTS_OF_LIMITS } from './mutants-of-limits.js'
import { MUTANTS_OF_TENANTS } from './mutants-of-tenants.js'
import { MUTANTS_OF_WORK } from './mutants-of-work.js'

const BY_NAME = new Map(CASES.map((conformanceCase) => [conformanceCase.name, conformanceCase]))

for (const mutant of [
  ...MUTANTS_OF_WORK,
  ...MUTANTS_OF_KEEPING,
  ...MUTANTS_OF_DEAD,
  ...MUTANTS_OF_LIMITS,
  ...MUTANTS_OF_JOB_KEYS,
  ...MUTANTS_OF_TENANTS,
  ...MUTANTS_OF_DEPTH,
  ...MUTANTS_OF_INTAKE,
  ...MUTANTS_OF_FACTS,
]) {
  class Spoilt extends Broken {
    constructor(options: MemoryOptions) {
      super(options)
      mutant.spoil(this)
    }
  }
  test(`caught: ${mutant.name}`, async () => {
    for (const name of mutant.caught) {
      const conformanceCase = BY_NAME.get(name)
      assert(conformanceCase, `there is no case "${name}"`)
      await assert.rejects(runCase(conformanceCase, memoryFactory(Spoilt)), AssertionError, `"${name}" does not notice`)
    }
  })
}

test('cases have names of their own', () => {
  assert.equal(BY_NAME.size, CASES.length)
})
