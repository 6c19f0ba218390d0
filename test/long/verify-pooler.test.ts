/** `leasehold verify` through a PgBouncer in transaction mode, with few connections of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CASES } from '../../src/testing/index.js'
import { verifiesWell } from '../cli/verify-run.js'
import { startPooler } from '../support/pgbouncer.js'
import { serverUrl } from '../support/postgres.js'

test('through a transaction pooler all is kept but what is promised of hints, which is not judged', async (t) => {
  const pooler = await startPooler(serverUrl(), { servers: 6 })
  t.after(() => pooler.stop())
  const { cases, promises, drills } = await verifiesWell(serverUrl(), pooler.url)
  const hints = CASES.filter(({ needs }) => needs.includes('wake'))
  assert.deepEqual(cases, { all: CASES.length, kept: CASES.length - hints.length, broken: 0, notJudged: hints.length })
  const unjudged = promises.flatMap((group) => group.promises).filter(({ verdict }) => verdict === 'not judged')
  assert.ok(unjudged.length > 0)
  assert.ok(drills!.drills.every(({ verdict }) => verdict === 'kept'))
})
