/** Processes with clocks that are minutes off and jump: the store's clock decides what is due and who is dead. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Child } from '../../chaos/child.js'
import { holds } from './form-run.js'

const MINUTE_MS = 60_000

test('30 s of wrong clocks: nothing runs early, nobody is taken over, nothing is lost or doubled', async () => {
  const { verdict, records, judged } = await holds('skew')
  assert.ok(judged.get('nothing runs early')! > 0)
  assert.equal(verdict.facts.stalledTakeOvers, 0)
  assert.equal(verdict.facts.repeatedEffects, 0)
  // The time in an id is that of the process that made it: the clocks were wrong indeed, each in its own way.
  const made = records.map(({ id }) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16))
  const spreadMs = Math.max(...made) - Math.min(...made)
  assert.ok(spreadMs > 3 * MINUTE_MS, `${spreadMs} ms`)
})

interface Clocks {
  main: number
  thread: number
  called: boolean
  made: number
  given: number
  passedMs: number
}

test('a wrong clock is wrong in every thread, jumps when its file says so, and only tells of another time', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'leasehold-clock-'))
  const clock = join(dir, 'clock')
  const set = (offsetMs: number): void => {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(offsetMs)
    writeFileSync(clock, bytes)
  }
  set(-5 * MINUTE_MS)
  const child = new Child<Clocks>('clock', '../test/chaos/clock-child.js', { clock }, ['./wrong-clock.js'])
  try {
    const near = (at: number, offsetMs: number): boolean => Math.abs(at - Date.now() - offsetMs) < MINUTE_MS / 2
    const before = await child.message(({ main, thread }) => near(main, -5 * MINUTE_MS) && near(thread, -5 * MINUTE_MS))
    assert.ok(near(before.made, -5 * MINUTE_MS))
    assert.ok(before.called)
    assert.equal(before.given, 1_000)
    set(7 * MINUTE_MS)
    const after = await child.message(({ main, thread }) => near(main, 7 * MINUTE_MS) && near(thread, 7 * MINUTE_MS))
    assert.ok(after.passedMs < MINUTE_MS, 'time that passes is not spoiled')
  } finally {
    child.kill()
    await child.ended
    rmSync(dir, { recursive: true, force: true })
  }
})
