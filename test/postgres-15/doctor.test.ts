/** The oldest server has all that the doctor looks at. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CHECKS } from '../../src/cli/doctor/checks.js'
import { connect } from '../../src/index.js'
import { examine } from '../cli/patient.js'
import { scratch } from '../support/postgres.js'

test('every check finds what it looks for on PostgreSQL 15', async (t) => {
  const store = await scratch({ major: 15 })
  const queue = await connect(store.url, { schema: store.schema, migrate: false })
  t.after(async () => {
    await queue.close()
    await store.drop()
  })
  for (const { name } of CHECKS) {
    const { verdict, text } = await examine(queue, name)
    // The movable clock of the tests is a change to the schema.
    if (name === 'schema') assert.equal(verdict, 'fail')
    else assert.ok(verdict === 'ok' || name === 'connections', `${name}: ${text}`)
  }
  const { storage } = queue.connection
  await storage.diagnose!.pace('queue')
  await storage.diagnose!.endings({ states: ['completed', 'cancelled', 'dead'], backMs: 60_000, limit: 10 })
})
