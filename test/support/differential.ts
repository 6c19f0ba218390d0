/** Some sequences of the differential test on a server of the runner's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differential } from '../../sim/differential/differential.js'
import { serverUrl } from './postgres.js'

const SEED = 1

export function differentialOn(major: 18 | 15, sequences: number): void {
  test(`${sequences} random sequences of 200 operations give equal answers and places, from seed ${SEED} on`, async () => {
    const result = await differential({ sequences, store: 'postgres', seed: SEED, url: serverUrl(major), first: true })
    assert.deepEqual(result, { sequences, differences: 0, operations: 200, found: [] })
  })
}
