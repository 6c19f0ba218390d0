/** What was released stays as it was, and what came after it is told apart from it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schemaName, withSchema } from '../../src/storage/postgres/schema-name.js'
import { PLAN } from '../../src/storage/postgres/schema-plan.js'
import { isText } from '../../src/storage/postgres/schema-state.js'
import { factsOf, keptSql, RELEASE_SCHEMA, RELEASES } from './release.js'

for (const release of RELEASES) {
  test(`the migrations of ${release} are what they were when it was released`, () => {
    const sql = keptSql(release)
    const released = PLAN.migrations.filter(({ version }) => version <= factsOf(release).version)
    assert.equal(released.at(-1)?.version, factsOf(release).version)
    for (const migration of released.filter(isText))
      assert.ok(
        sql.includes(withSchema(migration.text, schemaName(RELEASE_SCHEMA)).trim()),
        `migration ${migration.version} was changed after it was released; add another one`,
      )
  })

  test(`the functions are those of ${release}, or of a later revision`, () => {
    const { revision, digest } = factsOf(release).functions
    if (digest !== PLAN.functions.digest)
      assert.ok(
        PLAN.functions.revision > revision,
        `functions have changed since ${release}: raise FUNCTIONS_REVISION to ${revision + 1}`,
      )
  })
}

test('the numbers of migrations rise by one, and none serves fewer clients than a later one', () => {
  assert.deepEqual(
    PLAN.migrations.map(({ version }) => version),
    PLAN.migrations.map((_, n) => n + 1),
  )
  const ages = PLAN.migrations.map(({ oldestClient }) => oldestClient)
  assert.deepEqual(
    ages,
    [...ages].sort((a, b) => a - b),
  )
  assert.ok(oldestClient() <= PLAN.protocol)
})

test('at least one release is kept', () => {
  assert.ok(RELEASES.length > 0)
  for (const release of RELEASES) assert.ok(keptSql(release).length < 200_000, release)
})

function oldestClient(): number {
  return Math.max(...PLAN.migrations.map((migration) => migration.oldestClient))
}
