// Job: tests servers whose directory is removed, moved or made anew under them: they end, and no other server does.
// Called by: the test runner.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type EmbeddedServer, startEmbedded } from '@leasehold/embedded'
import { countInLog, isRunning, query, scratch, spawnUser, until, watchdogOf } from '../embedded/fixture.js'

test('a server whose directory is removed ends', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await looked(dir)
  await remove(dir)
  await ends(lost, watchdog)
  await lost.stop()
})

test('a server whose directory is removed and made anew ends, and the new one lives', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await remove(dir)
  const fresh = await startEmbedded({ dir })
  await ends(lost, watchdog)
  await livesOn(fresh)
})

// From here on most tests suspend the watchdog, so that what it finds at its next look is the same each time.

test('a server ends though the new one is ready before the watchdog looks', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await looked(dir)
  const resume = suspend(t, watchdog)
  await remove(dir)
  const fresh = await startEmbedded({ dir })
  const identity = await identityOf(fresh)
  resume()
  await ends(lost, watchdog)
  assert.deepEqual(await identityOf(fresh), identity)
  await livesOn(fresh)
})

test('a server ends though the watchdog has never seen it', async (t) => {
  const dir = join(await scratch(t), 'server')
  const starting = startEmbedded({ dir })
  await until('the watchdog is there, long before the server', async () => (await watchdogOf(dir)) !== undefined)
  const watchdog = (await watchdogOf(dir))!
  const resume = suspend(t, watchdog)
  const lost = await starting
  await remove(dir)
  const fresh = await startEmbedded({ dir })
  resume()
  await ends(lost, watchdog)
  await livesOn(fresh)
})

test('a server ends whatever the watchdog still finds of a directory that is being removed', async (t) => {
  const endsWithout = async (names: string[]) => {
    const { dir, lost, watchdog } = await startToLose(t)
    await looked(dir)
    const resume = suspend(t, watchdog)
    for (const name of names) await rm(join(dir, name), { recursive: true })
    await fillLog(dir)
    resume()
    await until('the watchdog has looked', async () => (await isLogShort(dir)) || !isRunning(lost.pid))
    await remove(dir)
    await ends(lost, watchdog)
  }
  await Promise.all(
    [['pgdata'], ['pgdata', 'users', 'lock'], ['pgdata/postmaster.pid', 'watch.json'], ['users', 'lock']].map(
      endsWithout,
    ),
  )
})

test('a watchdog that finds its record removed first stays until the server has ended', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await rm(join(dir, 'watch.json'))
  await looked(dir)
  await looked(dir)
  await query(lost.url, 'select 1')
  await remove(dir)
  await ends(lost, watchdog)
})

test('a watchdog whose record names a dead process, as after a slow start, does its work', async (t) => {
  const dir = join(await scratch(t), 'server')
  const user = await spawnUser(t, { dir })
  const watchdog = (await watchdogOf(dir))!
  const path = join(dir, 'watch.json')
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), pid: 4_000_000 + user.pid }))
  await looked(dir)
  await user.kill()
  await until('the server ends', () => !isRunning(user.report.pid))
  await until('the watchdog ends', () => !isRunning(watchdog))
})

test('a server whose directory is replaced by a file ends', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await looked(dir)
  const resume = suspend(t, watchdog)
  await remove(dir)
  await writeFile(dir, '')
  resume()
  await ends(lost, watchdog)
})

test('a server whose directory is moved ends, and its data is whole where it is now', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await looked(dir)
  await query(lost.url, 'create table kept as select 1 as one')
  const moved = `${dir}-moved`
  await rename(dir, moved)
  await ends(lost, watchdog)
  const again = await startEmbedded({ dir: moved })
  assert.deepEqual(await query(again.url, 'select one from kept'), [{ one: 1 }])
  await again.stop()
})

test('a copy in place of the directory does not lead to the server of the original', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  await query(lost.url, 'create table kept as select 1 as one')
  await query(lost.url, 'checkpoint')
  const resume = suspend(t, watchdog)
  const copy = `${dir}-copy`
  execFileSync('cp', ['-a', dir, copy])
  await remove(dir)
  await rename(copy, dir)
  const fresh = await startEmbedded({ dir })
  assert.deepEqual([fresh.attached, fresh.pid === lost.pid], [false, false])
  resume()
  await until('the server of the original ends', () => !isRunning(lost.pid))
  assert.deepEqual(await query(fresh.url, 'select one from kept'), [{ one: 1 }])
  await fresh.stop()
})

test('stop() after the directory was removed stops the server', async (t) => {
  const { dir, lost } = await startToLose(t)
  await remove(dir)
  await lost.stop()
  assert.ok(!isRunning(lost.pid))
})

test('stop() in the middle of a removal, with lock and list gone already, stops the server', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  suspend(t, watchdog)
  await rm(join(dir, 'lock'), { recursive: true })
  await rm(join(dir, 'users'), { recursive: true })
  await lost.stop()
  assert.ok(!isRunning(lost.pid))
})

test('stop() after the directory was made anew stops the old server and leaves the new one alone', async (t) => {
  const { dir, lost, watchdog } = await startToLose(t)
  const resume = suspend(t, watchdog)
  await remove(dir)
  const fresh = await startEmbedded({ dir })
  await lost.stop()
  assert.ok(!isRunning(lost.pid))
  resume()
  await until('the old watchdog ends', () => !isRunning(watchdog))
  await livesOn(fresh)
})

test('a directory made anew while its old server is being stopped keeps its data, watchdog and lock', async (t) => {
  const dir = join(await scratch(t), 'server')
  const user = await spawnUser(t, { dir })
  const watchdog = (await watchdogOf(dir))!
  const resume = suspend(t, user.report.pid)
  await user.kill()
  await until('the watchdog stops the server, under the lock', () => isToldToStop(user.report.pid))
  await remove(dir)
  const fresh = await startEmbedded({ dir })
  const identity = await identityOf(fresh)
  const turn = join(dir, 'lock', '2') // the number of the turn that the watchdog has in the old directory
  await writeFile(turn, 'held')
  resume()
  await until('the old server ends', () => !isRunning(user.report.pid))
  await until('its watchdog ends', () => !isRunning(watchdog))
  assert.deepEqual(await identityOf(fresh), identity)
  assert.equal(await readFile(turn, 'utf8'), 'held')
  assert.ok(isRunning((await watchdogOf(dir))!))
  await livesOn(fresh)
})

test('an error does not end the watchdog: it says so in the log and tries again', async (t) => {
  const dir = join(await scratch(t), 'server')
  const user = await spawnUser(t, { dir })
  const watchdog = (await watchdogOf(dir))!
  const lock = join(dir, 'lock')
  await rename(lock, `${lock}-aside`)
  await user.kill()
  await until('the watchdog tells the error', async () => (await countInLog(dir, 'watchdog: ')) === 1)
  assert.ok(isRunning(watchdog) && isRunning(user.report.pid))
  await rename(`${lock}-aside`, lock)
  await until('the server ends', () => !isRunning(user.report.pid))
  await until('the watchdog ends', () => !isRunning(watchdog))
  assert.equal(await countInLog(dir, 'watchdog: '), 1)
})

async function startToLose(t: TestContext): Promise<{ dir: string; lost: EmbeddedServer; watchdog: number }> {
  const dir = join(await scratch(t), 'server')
  const lost = await startEmbedded({ dir })
  return { dir, lost, watchdog: (await watchdogOf(dir))! }
}

async function remove(dir: string): Promise<void> {
  await rm(dir, { recursive: true, maxRetries: 10 }) // the server or the watchdog may be writing a file there
}

/** Waits until the watchdog has seen the server. */
async function looked(dir: string): Promise<void> {
  // Twice, for the first look may have begun before there was a server to see.
  for (let look = 1; look <= 2; look += 1) {
    await fillLog(dir)
    await until('the watchdog has looked', () => isLogShort(dir))
  }
}

/** Makes the log so long that the watchdog moves it, which it does late in a look. */
async function fillLog(dir: string): Promise<void> {
  await truncate(join(dir, 'server.log'), 11 * 1024 * 1024)
}

async function isLogShort(dir: string): Promise<boolean> {
  return (await stat(join(dir, 'server.log'))).size < 1024 * 1024
}

/** True when SIGINT waits for a suspended process. */
function isToldToStop(pid: number): boolean {
  const pending = /^ShdPnd:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number.parseInt(pending!, 16) & (1 << (constants.signals.SIGINT - 1))) !== 0
}

function suspend(t: TestContext, pid: number): () => void {
  process.kill(pid, 'SIGSTOP')
  const resume = () => {
    if (isRunning(pid)) process.kill(pid, 'SIGCONT')
  }
  t.after(resume)
  return resume
}

async function ends(lost: EmbeddedServer, watchdog: number): Promise<void> {
  await until('the lost server ends', () => !isRunning(lost.pid))
  await until('its watchdog ends', () => !isRunning(watchdog))
}

/** What tells one data folder from another, as read from the file that each checkpoint writes by its full path. */
function identityOf(server: EmbeddedServer): Promise<Record<string, string>[]> {
  return query(server.url, 'select system_identifier from pg_control_system()')
}

async function livesOn(fresh: EmbeddedServer): Promise<void> {
  await query(fresh.url, 'select 1')
  await fresh.stop()
  assert.ok(!isRunning(fresh.pid))
}
