// Job: tests that startEmbedded() refuses what it must, says why, and leaves nothing behind.
// Called by: the test runner.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type EmbeddedOptions, startEmbedded } from '@leasehold/embedded'
import { isRunning, NOBODY, postgres15, query, scratch, watchdogOf } from './fixture.js'

const WRONG_OPTIONS: [Record<string, unknown>, RegExp][] = [
  [{}, /dir must be/],
  [{ dir: 'x', databse: 'y' }, /unknown option "databse"; known: dir, database/],
  [{ dir: 'x', database: 'n'.repeat(64) }, /longer than 63 bytes/],
  [{ dir: 'x', database: 'a/b' }, /use letters, digits/],
  [{ dir: 'x', settings: { port: '5432' } }, /"port" is chosen by this package/],
  [{ dir: 'x', settings: { 'a b': '1' } }, /"a b" is not a setting/],
  [{ dir: 'x', settings: { fsync: true } }, /must be a string, such as 'true'/],
]

test('wrong options are refused with the reason, before anything is made', async (t) => {
  const place = await scratch(t)
  for (const [options, message] of WRONG_OPTIONS) {
    const placed = 'dir' in options ? { ...options, dir: join(place, 'x') } : options
    await assert.rejects(startEmbedded(placed as unknown as EmbeddedOptions), { code: 'BAD_OPTION', message })
  }
  assert.deepEqual(await readdir(place), [])
})

test('data of another major is refused and not touched', async (t) => {
  const dir = await scratch(t)
  const old = await startEmbedded({ dir, binaries: postgres15 })
  await query(old.url, 'create table kept as select 1 as one')
  const refusal = { code: 'DATA_FROM_OTHER_MAJOR', message: /made by PostgreSQL 15 and cannot be read by 18/ }
  await assert.rejects(startEmbedded({ dir }), refusal)
  await query(old.url, 'select 1')
  await old.stop()
  await assert.rejects(startEmbedded({ dir }), refusal)
  const again = await startEmbedded({ dir, binaries: postgres15 })
  assert.deepEqual(await query(again.url, 'select one from kept'), [{ one: 1 }])
  await again.stop()
})

test('a folder with files of something else is refused and not touched', async (t) => {
  const dir = await scratch(t)
  await writeFile(join(dir, 'package.json'), '{}')
  await assert.rejects(startEmbedded({ dir }), { code: 'DIR_NOT_EMPTY', message: /"package\.json"/ })
  assert.deepEqual(await readdir(dir), ['package.json'])
})

test('a file in place of the folder is refused', async (t) => {
  const dir = join(await scratch(t), 'file')
  await writeFile(dir, '')
  await assert.rejects(startEmbedded({ dir }), { code: 'BAD_OPTION', message: /not a directory/ })
})

test('a data folder that is none, and a lost password, are named', async (t) => {
  const dir = await scratch(t)
  await (await startEmbedded({ dir })).stop()
  await rm(join(dir, 'password'))
  await assert.rejects(startEmbedded({ dir }), { code: 'DATA_DAMAGED', message: /password is missing/ })
  await rm(join(dir, 'pgdata', 'PG_VERSION'))
  await assert.rejects(startEmbedded({ dir }), { code: 'DATA_DAMAGED', message: /lacks PG_VERSION/ })
  assert.deepEqual(await readdir(join(dir, 'users')), [])
})

test('a setting that the server refuses fails the start with the words of the server', async (t) => {
  const dir = await scratch(t)
  const refused = startEmbedded({ dir, settings: { shared_bufers: '1MB' } })
  await assert.rejects(refused, {
    code: 'START_FAILED',
    message: /unrecognized configuration parameter "shared_bufers"/,
  })
  assert.equal(await watchdogOf(dir), undefined)
  assert.deepEqual(await readdir(join(dir, 'users')), [])
  const server = await startEmbedded({ dir })
  await server.stop()
})

test('binaries that are not there are named', async (t) => {
  const place = await scratch(t)
  const options = { dir: join(place, 'server'), binaries: join(place, 'nothing') }
  await assert.rejects(startEmbedded(options), { code: 'BINARY_MISSING', message: /no PostgreSQL in .+nothing/ })
})

test('a process id in postmaster.pid that now belongs to another program does not stop the start', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  process.kill(first.pid, 'SIGKILL')
  // The same user as the server: PostgreSQL itself would take this process for another server and refuse.
  const stranger = spawn(
    'sleep',
    ['60'],
    process.getuid?.() === 0 ? { stdio: 'ignore', ...NOBODY } : { stdio: 'ignore' },
  )
  t.after(() => stranger.kill())
  await once(stranger, 'spawn')
  const path = join(dir, 'pgdata', 'postmaster.pid')
  await writeFile(path, (await readFile(path, 'utf8')).replace(/^\d+/, String(stranger.pid)))
  const second = await startEmbedded({ dir })
  assert.equal(second.attached, false)
  assert.ok(isRunning(stranger.pid!))
  await Promise.all([first.stop(), second.stop()])
  assert.ok(!isRunning(second.pid))
})

test('a lock and users left by dead processes, of this boot or an earlier one, do not count', async (t) => {
  const dir = await scratch(t)
  await (await startEmbedded({ dir })).stop()
  const here = await recordOfThisProcess(dir)
  const leftovers = [
    { ...here, started: '1' }, // our process id, used again
    { ...here, pid: 4_000_000 },
    { ...here, host: 'an earlier boot' },
  ]
  for (const [index, record] of leftovers.entries()) {
    await writeFile(join(dir, 'users', `leftover-${index}`), JSON.stringify(record))
    const lock = join(dir, 'lock', String(1_000 + index))
    await writeFile(lock, JSON.stringify(record))
    await utimes(lock, 1, 1)
    const server = await startEmbedded({ dir })
    assert.equal(server.attached, false)
    await server.stop()
    assert.ok(!isRunning(server.pid))
    assert.deepEqual(await readdir(join(dir, 'users')), [])
  }
})

test('a directory in use by another container is refused while that one has a pulse, and not after', async (t) => {
  const dir = await scratch(t)
  await (await startEmbedded({ dir })).stop()
  const here = await recordOfThisProcess(dir)
  const watch = join(dir, 'watch.json')
  await writeFile(watch, JSON.stringify({ ...here, host: 'another container' }))
  const beating = setInterval(() => void utimes(watch, new Date(), new Date()), 500)
  await assert.rejects(startEmbedded({ dir }), { code: 'IN_USE_ELSEWHERE' })
  clearInterval(beating)
  const server = await startEmbedded({ dir })
  await query(server.url, 'select 1')
  await server.stop()
})

/** The record that a process of ours writes, read from a user file. */
async function recordOfThisProcess(dir: string): Promise<{ pid: number; started: string; host: string }> {
  const server = await startEmbedded({ dir })
  const [name] = await readdir(join(dir, 'users'))
  const record = JSON.parse(await readFile(join(dir, 'users', name!), 'utf8'))
  await server.stop()
  return record
}
