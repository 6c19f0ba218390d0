/** Faults that other queues were reported to have (docs/cases.md): start, stop, pause, signals. On a real store. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, type TestContext, test } from 'node:test'
import { defineJob, type Queue } from '../../src/index.js'
import type { Worker } from '../../src/worker/index.js'
import { handlerModule, MAIN, scratchFolder } from '../cli/command.js'
import { pause } from '../process/worker-child.js'
import { Children } from '../support/children.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { handler } from '../worker/kit.js'
import { kitOn, places, queueOn, settles, until } from './kit.js'

let store: Scratch
let queue: Queue
let children: Children
beforeEach(async () => {
  store = await scratch()
  queue = queueOn(kitOn(store.storage))
  children = new Children(store)
})
afterEach(async () => {
  await children.end()
  await store.drop()
})

test('B21: after SIGTERM no job begins; the five that run finish, a hundred wait as if never touched, exit code 0', async () => {
  // Whoever waited for the grace instead of the jobs would not be back before the test's own time limit.
  const child = await children.start({ concurrency: 5, shutdownGrace: '10m' })
  const jobs = Array.from({ length: 105 }, (_, n) => pause.with({ name: `b21-${n}`, ms: 2_000 }))
  const results = await queue.enqueueMany(jobs)
  await children.until('start b21-', 5)
  assert.equal(await children.kill(child, 'SIGTERM'), 0)
  assert.equal(children.lines('start b21-').length, 5)
  assert.equal(children.lines('end b21-').length, 5)
  assert.deepEqual(await places(store), { completed: 5, ready: 100 })
  const views = await Promise.all(results.map((one) => queue.get('id' in one ? one.id! : '')))
  for (const view of views) if (view!.state === 'ready') assert.equal(view!.history, null)
})

test('B22: handlers that outlast the grace are signalled and given back: another worker starts them, with nothing to recover', async () => {
  const first = await children.start({ name: 'first', concurrency: 2, shutdownGrace: '1s' })
  await queue.enqueueMany([1, 2].map((n) => pause.with({ name: `b22-${n}`, ms: 600_000 })))
  await children.until('start b22-', 2)
  const [was] = (await queue.workers()).filter(({ name }) => name === 'first')
  await children.start({ name: 'second' })
  assert.equal(await children.kill(first, 'SIGTERM'), 0)
  const [left] = await store.sql('select count(*)::int as n from :s.lease where worker = $1', [was!.id])
  assert.equal(left!.n, 0)
  await children.until('start b22-', 4)
  for await (const view of queue.jobs({ state: 'running' })) {
    assert.deepEqual([view.history!.attempts, view.history!.crashes], [0, 0])
    const [entry] = view.history!.entries
    assert.deepEqual([entry!.outcome, entry!.note], ['given back', 'shutdown'])
  }
  assert.deepEqual(children.lines('event {"type":"worker.took over"'), [])
})

/** How many sessions the server has of connections with this name. */
async function sessions(name: string): Promise<number> {
  const [row] = await store.sql('select count(*)::int as n from pg_stat_activity where application_name = $1', [name])
  return row!.n as number
}

test('B25: twenty idle workers are paused one by one, resumed, paused and stopped at once; their connections go with them', async () => {
  const name = `b25_${store.schema}`
  const url = new URL(store.url)
  url.searchParams.set('application_name', name)
  const kit = kitOn(store.open({ url: url.href }))
  const steering = queueOn(kit)
  const queues = Array.from({ length: 20 }, (_, n) => `queue-${n}`)
  await steering.counts(queues[0]!)
  const before = await sessions(name)
  const workers = queues.map((one) => kit.worker([handler(undefined, { queue: one })]))
  await settles('start', Promise.all(workers.map((running) => running.start())))
  await until(async () => workers.every((running) => running.health().status === 'ok'))
  assert.ok((await sessions(name)) > before + 20)
  for (const one of queues) await settles(`pause of ${one}`, steering.pause(one))
  await settles('resume', Promise.all(queues.map((one) => steering.resume(one))))
  await settles('pause of all', Promise.all(queues.map((one) => steering.pause(one))))
  assert.ok((await steering.queues()).every(({ paused }) => paused))
  await settles('stop', Promise.all(workers.map((running) => running.stop())))
  // The pool of the connection itself has an upper bound of its own, and stays until that is closed.
  await until(async () => (await sessions(name)) <= Math.max(before, 6))
  await kit.connection.storage.close()
  await until(async () => (await sessions(name)) === 0)
})

const ORDERS: [string, (running: Worker) => Promise<unknown>, 'ok' | 'stopped'][] = [
  ['start, stop, start, stop, none awaited', (w) => Promise.all([w.start(), w.stop(), w.start(), w.stop()]), 'stopped'],
  ['start, stop, start, none awaited', (w) => Promise.all([w.start(), w.stop(), w.start()]), 'ok'],
  ['each twice', (w) => Promise.all([w.start(), w.start(), w.stop(), w.stop(), w.start(), w.start()]), 'ok'],
  ['stop, start', (w) => Promise.all([w.stop(), w.start()]), 'ok'],
  [
    'each awaited',
    async (w) => {
      for (const step of [w.start, w.stop, w.start, w.stop]) await step.call(w)
    },
    'stopped',
  ],
]

test('B27: start and stop in any order, awaited or not: all promises settle, the last call wins, and it works afterwards', async () => {
  for (const [name, order, end] of ORDERS) {
    const kit = kitOn(store.storage)
    const running = kit.worker([handler()])
    await settles(name, order(running))
    await until(async () => running.health().status === end)
    await settles(`${name}: start`, running.start())
    const [id] = await kit.enqueue()
    kit.connection.hints.tell('queue')
    await kit.next('job.completed')
    assert.equal((await kit.view(id!)).state, 'completed')
    await settles(`${name}: stop`, running.stop())
    assert.equal(running.health().status, 'stopped')
  }
  // Whoever was begun and forgotten would still beat.
  const [row] = await store.sql('select count(*)::int as n from :s.worker')
  assert.equal(row!.n, 0)
})

const slow = defineJob<number>('slow')
const SLOW = `export const slow = defineJob('slow').handle(async (ms, { signal, log }) => {
  log('began')
  for (const until = Date.now() + ms; Date.now() < until && !signal.aborted; ) await new Promise((done) => setTimeout(done, 20))
  signal.throwIfAborted()
})`

/** The commands by which others start the worker: each makes an outer process that the signal goes to. */
async function wrappers(t: TestContext) {
  const dir = await scratchFolder(t)
  const command = `"${process.execPath}" "${MAIN}" work "${await handlerModule(dir, SLOW)}" --grace 10m`
  const scripts = { plain: command, exec: `exec ${command}` }
  await writeFile(join(dir, 'package.json'), JSON.stringify({ private: true, scripts }))
  const entry = join(dir, 'entrypoint.sh')
  await writeFile(entry, `#!/bin/sh\nset -e\nexec ${command} "$@"\n`)
  await chmod(entry, 0o755)
  const script = (name: string): Wrapper => ({ program: 'npm', args: ['run', '--silent', name], cwd: dir })
  return { plain: script('plain'), exec: script('exec'), entry: { program: entry, args: [], cwd: dir } }
}

interface Wrapper {
  program: string
  args: string[]
  cwd: string
}

/** Starts the wrapper, waits until its job runs, sends so many signals to the outer process; how it all ended. */
async function signalled(t: TestContext, { program, args, cwd }: Wrapper, ms: number, signals: 1 | 2) {
  const env = { ...process.env, LEASEHOLD_URL: store.url, LEASEHOLD_SCHEMA: store.schema }
  const outer = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let wrote = ''
  for (const stream of [outer.stdout, outer.stderr])
    stream.on('data', (chunk) => {
      wrote += String(chunk)
    })
  const exit = once(outer, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const { id } = await queue.enqueue(slow, ms)
  await until(async () => wrote.includes('"began"'))
  const [running] = await queue.workers()
  const pid = Number(running!.name.split('/').at(-1))
  t.after(() => alive(pid) && process.kill(pid, 'SIGKILL'))
  outer.kill('SIGTERM')
  await until(async () => wrote.includes(': draining'))
  if (signals === 2) outer.kill('SIGTERM')
  const [code, signal] = await exit
  await until(async () => !alive(pid))
  const { state } = (await queue.get(id))!
  await queue.cancel(id)
  return { code: signal ?? code, state, wrote }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('B29: a signal to the outer process drains the worker, a second one ends it at once; no child is left', async (t) => {
  const { plain, exec, entry } = await wrappers(t)
  for (const wrapper of [exec, entry]) {
    const drained = await signalled(t, wrapper, 1_000, 1)
    assert.deepEqual([drained.code, drained.state], [0, 'completed'], drained.wrote)
    const hurried = await signalled(t, wrapper, 600_000, 2)
    assert.match(hurried.wrote, /SIGTERM again: ending at once/)
    assert.deepEqual([hurried.code, hurried.state], [143, 'ready'], hurried.wrote)
  }
  // Here the shell in between ends by the signal and hands nothing on, unless it is one that replaces itself.
  const orphaned = await signalled(t, plain, 1_000, 1)
  assert.equal(orphaned.state, 'completed', orphaned.wrote)
})
