/** The world of the simulator over the real SQL adapter: the same rules hold on a real server. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { simulateOn } from '../../sim/postgres-seeds.js'
import { PostgresSchema } from '../../sim/postgres-world.js'
import { serverUrl } from '../support/postgres.js'

const SEEDS = 20

test(`${SEEDS} seeds break no rule on PostgreSQL`, { timeout: 300_000 }, async (t) => {
  const schema = await PostgresSchema.make(serverUrl(), `test_sim_${process.pid}`)
  t.after(() => schema.drop())
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations } = await simulateOn(schema, seed)
    assert.deepEqual(violations, [], `npm run sim -- --store postgres --seed ${seed} --trace`)
  }
})

test('the same seed gives the same trace on PostgreSQL', { timeout: 60_000 }, async (t) => {
  const schema = await PostgresSchema.make(serverUrl(), `test_sim_twice_${process.pid}`)
  t.after(() => schema.drop())
  const first = await simulateOn(schema, 4)
  assert.equal((await simulateOn(schema, 4)).digest, first.digest)
})
