/** A server that refuses writes for a while, with its sessions kept or ended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './form-run.js'

test('30 s of read-only spells: work goes on by itself when the store writes again, and nothing is lost or doubled', async () => {
  const { verdict } = await holds('readonly')
  assert.ok(verdict.facts.returns.every(({ kind }) => kind === 'read-only'))
})
