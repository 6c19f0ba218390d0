/** A server that dies or is stopped and comes back, or loses its sessions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './form-run.js'

test('30 s of restarts: nothing that was told as stored is lost, nobody is taken over for an outage of all', async () => {
  const { verdict } = await holds('restart')
  assert.ok(verdict.facts.returns.every(({ kind }) => kind.startsWith('restart ')))
})
