// Job: tests what one process sees of startEmbedded(): start, join, data, settings, security, leaving no trace.
// Called by: the test runner.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { stat, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { EmbeddedError, type EmbeddedServer, startEmbedded } from '@leasehold/embedded'
import pg from 'pg'
import { countInLog, isRunning, postgres15, query, scratch, spawnProgram, until, watchdogOf } from './fixture.js'

test('the first start makes a server of PostgreSQL 18 that answers, and stop() leaves no process', async (t) => {
  const dir = join(await scratch(t), 'made', 'by', 'start')
  const server = await startEmbedded({ dir })
  assert.deepEqual([server.dir, server.attached, server.version], [dir, false, '18.4'])
  assert.deepEqual(await query(server.url, 'select current_database() as name'), [{ name: 'leasehold' }])
  const watchdog = (await watchdogOf(dir))!
  assert.ok(isRunning(server.pid) && isRunning(watchdog))
  await server.stop()
  assert.ok(!isRunning(server.pid))
  await until('the watchdog is gone', () => !isRunning(watchdog), 2_000)
})

test('data, port and password are kept from one start to the next', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  await query(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  const second = await startEmbedded({ dir })
  assert.equal(second.url, first.url)
  assert.equal(second.attached, false)
  assert.deepEqual(await query(second.url, 'select answer from kept'), [{ answer: 42 }])
  await second.stop()
})

test('a port that somebody took meanwhile is replaced by another', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  await first.stop()
  const stranger = createServer().listen(Number(new URL(first.url).port), '127.0.0.1')
  await once(stranger, 'listening')
  const second = await startEmbedded({ dir })
  assert.notEqual(new URL(second.url).port, new URL(first.url).port)
  await query(second.url, 'select 1')
  await second.stop()
  stranger.close()
})

test('a second call joins; the server stays until both have stopped, however often one says so', async (t) => {
  const dir = await scratch(t)
  const first = await startEmbedded({ dir })
  const second = await startEmbedded({ dir })
  assert.deepEqual([second.attached, second.pid, second.url], [true, first.pid, first.url])
  await Promise.all([first.stop(), first.stop()])
  await first.stop()
  await query(second.url, 'select 1')
  await second.stop()
  assert.ok(!isRunning(first.pid))
})

test('calls at the same time in one process share one server', async (t) => {
  const dir = await scratch(t)
  const servers = await Promise.all(Array.from({ length: 4 }, () => startEmbedded({ dir })))
  assert.equal(new Set(servers.map((server) => server.url)).size, 1)
  assert.deepEqual(servers.map((server) => server.attached).sort(), [false, true, true, true])
  await Promise.all(servers.map((server) => server.stop()))
  assert.ok(!isRunning(servers[0]!.pid))
})

test('a missing database is created, on a new and on a running server, whatever its name', async (t) => {
  const dir = await scratch(t)
  const names = ['first', 'Ünï-quöted 1.0', 'first']
  const servers: EmbeddedServer[] = []
  for (const database of names) servers.push(await startEmbedded({ dir, database }))
  for (const [index, server] of servers.entries()) {
    assert.deepEqual(await query(server.url, 'select current_database() as name'), [{ name: names[index] }])
    await server.stop()
  }
})

test('commits are durable, text is UTF-8 and pages are checked by default', async (t) => {
  const dir = await scratch(t)
  const server = await startEmbedded({ dir })
  const names = ['fsync', 'synchronous_commit', 'max_connections', 'server_encoding', 'data_checksums']
  const columns = names.map((name) => `current_setting('${name}') as ${name}`).join(', ')
  const rows = await query(server.url, `select ${columns}, upper('ä') as upper, 'Z' < 'a' as ordered`)
  assert.deepEqual(rows, [
    {
      fsync: 'on',
      synchronous_commit: 'on',
      max_connections: '200',
      server_encoding: 'UTF8',
      data_checksums: 'on',
      upper: 'Ä',
      ordered: true,
    },
  ])
  await server.stop()
})

test('settings of the caller reach the server', async (t) => {
  const dir = await scratch(t)
  const settings = { fsync: 'off', shared_buffers: '16MB', 'pg_catalog.custom': "it's" }
  const server = await startEmbedded({ dir, settings })
  const rows = await query(
    server.url,
    `select current_setting('fsync') as a, current_setting('shared_buffers') as b,
            current_setting('pg_catalog.custom') as c`,
  )
  assert.deepEqual(rows, [{ a: 'off', b: '16MB', c: "it's" }])
  await server.stop()
})

test('another major version runs from the package that is named', async (t) => {
  const dir = await scratch(t)
  const server = await startEmbedded({ dir, binaries: postgres15 })
  assert.equal(server.version, '15.18')
  await query(server.url, 'select 1')
  await server.stop()
})

test('only the password opens the server, and only on the loopback address', async (t) => {
  const dir = await scratch(t)
  const server = await startEmbedded({ dir })
  const url = new URL(server.url)
  for (const password of ['', 'wrong']) {
    const client = new pg.Client({
      host: url.hostname,
      port: Number(url.port),
      user: 'leasehold',
      database: 'leasehold',
      password,
    })
    await assert.rejects(client.connect())
  }
  const rows = await query(
    server.url,
    `select current_setting('listen_addresses') as listen, current_setting('unix_socket_directories') as sockets,
            (select string_agg(distinct auth_method, ',') from pg_hba_file_rules) as methods`,
  )
  assert.deepEqual(rows, [{ listen: '127.0.0.1', sockets: '', methods: 'scram-sha-256' }])
  const modes = await Promise.all([dir, join(dir, 'pgdata'), join(dir, 'password')].map((path) => stat(path)))
  assert.deepEqual(
    modes.map(({ mode }) => mode & 0o777),
    [0o700, 0o700, 0o600],
  )
  await server.stop()
})

test('a stranger on the port that asks for the bare password does not get it', async (t) => {
  const dir = await scratch(t)
  const server = await startEmbedded({ dir })
  await server.stop()
  const heard: string[] = []
  const stranger = createServer((socket) => {
    socket.on('data', (data) => heard.push(data.toString('latin1')))
    socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])) // AuthenticationCleartextPassword
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  const address = stranger.address()
  assert.ok(address !== null && typeof address === 'object')
  // A process that poses as the server: its working directory is the data folder and its id is in postmaster.pid.
  const data = join(dir, 'pgdata')
  const { child } = spawnProgram(t, "process.chdir(process.argv[1]); console.log('in'); setInterval(() => {}, 1000)", [
    data,
  ])
  await once(child.stdout, 'data')
  await writeFile(join(data, 'postmaster.pid'), `${child.pid}\n${data}\n1\n${address.port}\n\n127.0.0.1\n1 1\nready\n`)
  await assert.rejects(startEmbedded({ dir }), { code: 'START_FAILED', message: /did not prove who it is/ })
  assert.ok(heard.length > 0)
  assert.ok(!heard.join('').includes(new URL(server.url).password))
  stranger.close()
})

test('the host ends by itself, with nothing but its own words on its output and no signal handlers', async (t) => {
  const dir = await scratch(t)
  const program = `
    import { startEmbedded } from '@leasehold/embedded'
    const count = () => ['SIGINT', 'SIGTERM', 'SIGHUP', 'exit'].map((name) => process.listenerCount(name)).join()
    const before = count()
    const server = await startEmbedded({ dir: process.argv[1] })
    console.log(JSON.stringify({ pid: server.pid, same: before === count() }))`
  const { child, lines } = spawnProgram(t, program, [dir])
  const exit = once(child, 'exit')
  const said: { pid: number; same: boolean }[] = []
  for await (const line of { [Symbol.asyncIterator]: () => lines }) said.push(JSON.parse(line))
  assert.deepEqual(await exit, [0, null])
  assert.equal(said.length, 1)
  const { pid, same } = said[0]!
  assert.equal(same, true)
  assert.ok(isRunning(pid), 'the server is still there when its host has just ended')
  await until('the server has ended', () => !isRunning(pid), 10_000)
})

test('a log of more than 10 MB is moved aside', async (t) => {
  const dir = await scratch(t)
  await (await startEmbedded({ dir })).stop()
  await truncate(join(dir, 'server.log'), 11 * 1024 * 1024)
  const server = await startEmbedded({ dir })
  assert.ok((await stat(join(dir, 'server.log'))).size < 100_000)
  assert.equal((await stat(join(dir, 'server.log.1'))).size, 11 * 1024 * 1024)
  assert.equal(await countInLog(dir, 'ready to accept connections'), 1)
  await truncate(join(dir, 'server.log'), 11 * 1024 * 1024)
  await until('the watchdog moves it too', async () => (await stat(join(dir, 'server.log'))).size < 100_000, 5_000)
  await server.stop()
})

test('an error is an EmbeddedError with a code', async () => {
  const error = await startEmbedded({ dir: '' }).catch((reason: unknown) => reason)
  assert.ok(error instanceof EmbeddedError)
  assert.equal(error.code, 'BAD_OPTION')
})
