/** A network that is spoiled for some or for all, in whole or in one direction. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './form-run.js'

test('30 s of cuts: processes find their store again by themselves, and nothing is lost, doubled or settled twice', async () => {
  const { verdict } = await holds('cut')
  assert.ok(verdict.facts.returns.every(({ kind }) => kind.startsWith('cut ')))
})
