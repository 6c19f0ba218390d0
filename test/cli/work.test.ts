/** `leasehold work`: which handlers it finds, how it ends, what it writes. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../support/until.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder, start } from './command.js'

interface LogLine {
  event: string
  level: string
  jobId?: string
  completed?: number
  message?: string
}

let store: CliStore

before(async () => {
  store = await cliStore('work')
})
after(() => store.drop())

function logOf(stdout: string): LogLine[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as LogLine)
}

async function stateOf(id: string): Promise<string> {
  return (await store.json<{ state: string }>('jobs', 'show', id)).state
}

async function enqueued(...args: string[]): Promise<string> {
  return (await store.json<{ id: string }>('enqueue', ...args)).id
}

test('named and default exports are run until all is done; the log is lines of JSON', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `export const named = defineJob('named').handle((_, context) => context.log('seen'))
     export const kind = defineJob('listed', { queue: 'other' })
     export default [kind.handle(() => 1)]`,
  )
  const ids = [await enqueued('named', '1'), await enqueued('listed', '1', '--queue', 'other')]
  const { code, stdout, stderr } = await run(['work', module, '--until-empty'], { env: store.env })
  assert.equal(code, 0)
  assert.match(stderr, /running listed, named from other, default/)
  const log = logOf(stdout)
  assert.deepEqual(
    log
      .filter(({ event }) => event === 'job.completed')
      .map(({ jobId }) => jobId)
      .sort(),
    ids.sort(),
  )
  assert.equal(log.find(({ event }) => event === 'job.log')?.message, 'seen')
  assert.deepEqual([log.at(-1)!.event, log.at(-1)!.completed], ['worker.stats', 2])
})

test('--max ends a run that never gets empty, --log-level silences it', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `export const a = defineJob('again').handle(() => snooze(0))`,
  )
  await enqueued('again')
  const { code, stdout } = await run(['work', module, '--until-empty', '--max', '1s', '--log-level', 'error'], {
    env: store.env,
  })
  assert.equal(code, 0)
  assert.deepEqual(
    logOf(stdout).map(({ event }) => event),
    ['worker.stats'],
  )
  const { jobs } = await store.json<{ jobs: { id: string }[] }>('jobs', 'list', '--kind', 'again')
  await store.run('jobs', 'cancel', ...jobs.map(({ id }) => id))
})

const SLOW = `export const slow = defineJob('slow').handle(async (ms, { signal, log }) => {
  log('began')
  for (const until = Date.now() + ms; Date.now() < until && !signal.aborted; ) await new Promise((done) => setTimeout(done, 20))
  signal.throwIfAborted()
})`

test('SIGTERM lets what runs finish, takes nothing new, and is no failure', async (t) => {
  const module = await handlerModule(await scratchFolder(t), SLOW)
  const [running, waiting] = [await enqueued('slow', '3000'), await enqueued('slow', '1')]
  const worker = start(['work', module, '--concurrency', '1', '--name', 'cli-test'], { env: store.env })
  await worker.wrote(/"began"/)
  const { workers } = await store.json<{ workers: { name: string; concurrency: number }[] }>('workers')
  assert.deepEqual([workers[0]!.name, workers[0]!.concurrency], ['cli-test', 1])
  worker.child.kill('SIGTERM')
  const { code, stderr } = await worker.ended
  assert.equal(code, 0)
  assert.match(stderr, /SIGTERM: draining/)
  assert.deepEqual([await stateOf(running), await stateOf(waiting)], ['completed', 'ready'])
  await store.run('jobs', 'cancel', waiting)
})

test('what is kept for how long can be said, and is told by the worker', async (t) => {
  const module = await handlerModule(await scratchFolder(t), SLOW)
  const kept = ['--completed-retention', '2h', '--dead-retention', '7d', '--completed-max', '100', '--dead-max', '50']
  const worker = start(['work', module, '--name', 'keeper', ...kept], { env: store.env })
  t.after(() => worker.child.kill('SIGKILL'))
  type Workers = { workers: { name: string; completedMs: number }[] }
  const keeper = async () => (await store.json<Workers>('workers')).workers.find(({ name }) => name === 'keeper')
  await until('its first beat', async () => (await keeper()) !== undefined)
  assert.equal((await keeper())?.completedMs, 7_200_000)
  worker.child.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  for (const [option, value, said] of [
    ['--completed-retention', 'long', /--completed-retention: "long" is not a duration/],
    ['--dead-max', 'all', /--dead-max: "all" is not allowed; give a whole number from 0 to 1,000,000/],
  ] as const) {
    const { code, stderr } = await store.run('work', module, option, value)
    assert.equal(code, 2)
    assert.match(stderr, said)
  }
})

test('a second signal ends it at once, gives the job back and says so in the exit code', async (t) => {
  const module = await handlerModule(await scratchFolder(t), SLOW)
  for (const [signal, exit] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const id = await enqueued('slow', '60000')
    const worker = start(['work', module], { env: store.env })
    await worker.wrote(/"began"/)
    worker.child.kill(signal)
    await worker.wrote(/draining/)
    worker.child.kill(signal)
    assert.equal((await worker.ended).code, exit)
    assert.equal(await stateOf(id), 'ready')
    await store.run('jobs', 'cancel', id)
  }
})

test('what a module or a handler has left open does not keep the command alive', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `setInterval(() => {}, 1_000)
     export const deaf = defineJob('deaf').handle((_, { log }) => (log('began'), new Promise(() => setTimeout(() => {}, 600_000))))`,
  )
  assert.equal((await run(['work', module, '--until-empty'], { env: store.env })).code, 0)
  const id = await enqueued('deaf')
  const worker = start(['work', module, '--grace', '200ms'], { env: store.env })
  await worker.wrote(/"began"/)
  worker.child.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  assert.equal(await stateOf(id), 'ready')
  await store.run('jobs', 'cancel', id)
})

test('a reader of the log that leaves makes it drain', async (t) => {
  const module = await handlerModule(await scratchFolder(t), SLOW)
  const id = await enqueued('slow', '500')
  const worker = start(['work', module], { env: store.env })
  await worker.wrote(/"began"/)
  worker.child.stdout!.destroy()
  const { code } = await worker.ended
  assert.equal(code, 0)
  assert.equal(await stateOf(id), 'completed')
})

test('modules without handlers and modules that fail are told from each other', async (t) => {
  const dir = await scratchFolder(t)
  const none = await run(['work', await handlerModule(dir, 'export const a = 1', 'none.mjs')], { env: store.env })
  assert.equal(none.code, 2)
  assert.match(none.stderr, /exports no handler/)
  const kind = await run(['work', await handlerModule(dir, `export const mail = defineJob('mail')`, 'kind.mjs')], {
    env: store.env,
  })
  assert.match(kind.stderr, /exports the kind mail, and no handler of it/)
  const boom = await run(['work', await handlerModule(dir, `throw new Error('boom')`, 'boom.mjs')], { env: store.env })
  assert.equal(boom.code, 1)
  assert.match(boom.stderr, /boom\.mjs could not be loaded: boom \(MODULE_FAILED\)/)
  const twice = await handlerModule(
    dir,
    `export const a = defineJob('x').handle(() => 1)\nexport const b = defineJob('x').handle(() => 2)`,
    'twice.mjs',
  )
  assert.match((await run(['work', twice], { env: store.env })).stderr, /\(DUPLICATE_HANDLER\)/)
})
