// Job: tests servers with several user processes, some of which are killed.
// Called by: the test runner.
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEmbedded } from '@leasehold/embedded'
import {
  countInLog,
  isRunning,
  query,
  scratch,
  spawnProgram,
  spawnUser,
  until,
  watchdogOf,
} from '../embedded/fixture.js'

test('eight processes at once on an empty directory share one initdb and one server', async (t) => {
  const dir = join(await scratch(t), 'server')
  const users = await Promise.all(Array.from({ length: 8 }, () => spawnUser(t, { dir })))
  const reports = users.map((user) => user.report)
  assert.equal(new Set(reports.map((report) => report.pid)).size, 1)
  assert.equal(reports.filter((report) => !report.attached).length, 1)
  await Promise.all(reports.map((report) => query(report.url, 'select 1')))
  assert.equal(await countInLog(dir, 'syncing data to disk'), 1)
  assert.equal(await countInLog(dir, 'ready to accept connections'), 1)
  const last = users.pop()!
  await Promise.all(users.map((user) => user.stop()))
  await query(last.report.url, 'select 1')
  await last.stop()
  assert.ok(!isRunning(last.report.pid))
})

test('a killed starter does not take the server from another user, and the last killed user does', async (t) => {
  const dir = await scratch(t)
  const starter = await spawnUser(t, { dir })
  const other = await spawnUser(t, { dir })
  await query(starter.report.url, 'create table kept as select 1 as one')
  await starter.kill()
  for (const end = performance.now() + 4_000; performance.now() < end; ) {
    assert.deepEqual(await query(other.report.url, 'select one from kept'), [{ one: 1 }])
  }
  const watchdog = (await watchdogOf(dir))!
  await other.kill()
  await until('the server ends', () => !isRunning(other.report.pid), 10_000)
  await until('the watchdog ends', () => !isRunning(watchdog), 2_000)
  const again = await startEmbedded({ dir })
  assert.equal(again.attached, false)
  assert.deepEqual(await query(again.url, 'select one from kept'), [{ one: 1 }])
  assert.equal(await countInLog(dir, 'was not properly shut down'), 0)
  await again.stop()
})

test('Ctrl-C in the terminal of the starter does not reach the server', async (t) => {
  const dir = await scratch(t)
  const starter = await spawnUser(t, { dir }, { detached: true })
  const other = await spawnUser(t, { dir })
  process.kill(-starter.pid, 'SIGINT')
  await until('the starter ends', () => !isRunning(starter.pid))
  await query(other.report.url, 'select 1')
  assert.equal(await countInLog(dir, 'received fast shutdown request'), 0)
  await other.stop()
  assert.ok(!isRunning(other.report.pid))
})

test('a killed watchdog is replaced by the next user that comes or goes', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  const killed = [await killWatchdog(dir)]
  const second = await startEmbedded({ dir })
  killed.push(await killWatchdog(dir))
  await second.stop()
  const watchdog = (await watchdogOf(dir))!
  assert.ok(isRunning(watchdog) && !killed.includes(watchdog))
  await first.stop()
})

test('a server whose users and watchdog were all killed is joined and then stopped by the next user', async (t) => {
  const dir = await scratch(t)
  const user = await spawnUser(t, { dir })
  await killWatchdog(dir)
  await user.kill()
  assert.ok(isRunning(user.report.pid))
  const next = await startEmbedded({ dir })
  assert.deepEqual([next.attached, next.pid], [true, user.report.pid])
  await next.stop()
  assert.ok(!isRunning(next.pid))
})

test('after kill -9 of the server the next start recovers every acknowledged commit', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  await query(first.url, 'create table kept (n int)')
  for (let n = 1; n <= 50; n += 1) await query(first.url, `insert into kept values (${n})`)
  process.kill(first.pid, 'SIGKILL')
  await until('the server is gone', () => !isRunning(first.pid))
  const second = await startEmbedded({ dir })
  assert.deepEqual([second.attached, second.url], [false, first.url])
  assert.deepEqual(await query(second.url, 'select count(*)::int as n from kept'), [{ n: 50 }])
  await first.stop()
  await query(second.url, 'select 1')
  await second.stop()
  assert.ok(!isRunning(second.pid))
})

test('the next start waits for a query that outlived the killed server', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  // Computes without a pause, so it does not notice the death of its parent until it is done.
  const busy = query(first.url, 'select sum(n) as sum from generate_series(1, 12000000) as n').catch(() => [])
  await until('the query runs', async () => {
    const [row] = await query(
      first.url,
      "select count(*)::int as n from pg_stat_activity where query like '%12000000%'",
    )
    return Number(row?.n) >= 2
  })
  process.kill(first.pid, 'SIGKILL')
  const second = await startEmbedded({ dir })
  await query(second.url, 'select 1')
  assert.ok((await countInLog(dir, 'pre-existing shared memory block')) > 0)
  await busy
  await Promise.all([first.stop(), second.stop()])
})

test('a process killed at any moment of the first start leaves nothing that stops the next one', async (t) => {
  for (const delayMs of [20, 100, 300, 600, 900]) {
    const dir = await scratch(t)
    const program = `import { startEmbedded } from '@leasehold/embedded'
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${delayMs})
      await startEmbedded({ dir: process.argv[1] })`
    const { child } = spawnProgram(t, program, [dir])
    await until('the starter is dead', () => child.signalCode === 'SIGKILL')
    const server = await startEmbedded({ dir })
    await query(server.url, 'select 1')
    await server.stop()
    assert.ok(!isRunning(server.pid))
  }
})

test('users that come and go at random never find a dead server', async (t) => {
  const dir = await scratch(t)
  const lives = Array.from({ length: 6 }, async () => {
    for (let round = 0; round < 6; round += 1) {
      const server = await startEmbedded({ dir })
      await query(server.url, 'select 1')
      await server.stop()
    }
  })
  await Promise.all(lives)
  assert.deepEqual(await readdir(join(dir, 'users')), [])
  assert.ok((await readdir(join(dir, 'lock'))).length <= 2)
})

async function killWatchdog(dir: string): Promise<number> {
  const watchdog = (await watchdogOf(dir))!
  assert.ok(isRunning(watchdog))
  process.kill(watchdog, 'SIGKILL')
  await until('the watchdog is gone', () => !isRunning(watchdog))
  return watchdog
}

test('a first start goes on where a killed one left a password that is empty, or another user’s', async (t) => {
  const dir = await scratch(t)
  await writeFile(join(dir, 'password'), '', { mode: 0o600 })
  await writeFile(join(dir, 'password.0a1b2c.new'), 'half')
  const server = await startEmbedded({ dir })
  await query(server.url, 'select 1')
  await server.stop()
})
