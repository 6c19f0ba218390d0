/** Everybody at once, for a minute here; `npm run soak` goes on for 15. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { soak } from '../../soak/main.js'
import { serverUrl } from '../support/postgres.js'

test('B111, B112: producers, workers, upkeep and operators at once in random order meet no deadlock and no error', async () => {
  const report = await soak(serverUrl(), { seconds: 60, processes: 4 })
  assert.deepEqual({ deadlocks: report.deadlocks, errors: report.errors }, { deadlocks: 0, errors: {} })
  // Whatever each operation stands for happened, and many times.
  for (const [operation, count] of Object.entries(report.byOperation))
    assert.ok(count > 50, `${operation}: ${count}, seed ${report.seed}`)
  assert.equal(Object.keys(report.byOperation).length, 9)
})
