/** When claims read a lane from its start again. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { Cursors } from '../../src/storage/postgres/cursors.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'

test('a sweep that took long, by whatever it waited for, is followed by another one within ten seconds', async () => {
  const time = new VirtualTime()
  const cursors = new Cursors(time)
  cursors.swept(30_000)
  await time.advance(9_000)
  assert.equal(cursors.sweepDue(), false)
  assert.equal(cursors.sweepAllowed(), false)
  await time.advance(1_000)
  assert.equal(cursors.sweepDue(), true)
  assert.equal(cursors.sweepAllowed(), true)
})

test('a cheap sweep is due again after a second, a dear one after fifty times its cost', async () => {
  const time = new VirtualTime()
  const cursors = new Cursors(time)
  cursors.swept(1)
  await time.advance(999)
  assert.equal(cursors.sweepDue(), false)
  await time.advance(1)
  assert.equal(cursors.sweepDue(), true)
  cursors.swept(100)
  await time.advance(4_999)
  assert.equal(cursors.sweepDue(), false)
  await time.advance(1)
  assert.equal(cursors.sweepDue(), true)
})
