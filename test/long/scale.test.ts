/** `leasehold scale`: what an autoscaler is told, of queues, jobs and workers of any kind. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { type CliStore, cliStore, handlerModule, run, scratchFolder, start } from '../cli/command.js'
import { until } from '../support/until.js'

interface Figures {
  depth: number
  ready: number
  running: number
  completedMinute: number
  exact: boolean
  oldestWaitMs: number | null
  p95WaitMs: number | null
}

interface Scale extends Figures {
  at: string
  processes: { wanted: number; why: string; by: string; target: number; min: number; max: number; slotsOfEach: number }
  workers: number
  slots: number
  busy: number
  queues: (Figures & { queue: string; paused: boolean })[]
}

let store: CliStore

before(async () => {
  store = await cliStore('scale')
})
after(() => store.drop())

const scale = (...args: string[]): Promise<Scale> => store.json<Scale>('scale', ...args)

async function enqueue(kind: string, queue: string, count: number, ...args: string[]): Promise<void> {
  const input = Array.from({ length: count }, (_, n) => String(n)).join('\n')
  const { code, stderr } = await run(['enqueue', kind, '--stdin-lines', '--queue', queue, ...args], {
    env: store.env,
    input,
  })
  assert.equal(code, 0, stderr)
}

/** A worker of the kind whose jobs run on. */
async function atWork(t: TestContext, kind: string, queue: string): Promise<void> {
  const module = await handlerModule(
    await scratchFolder(t),
    `export const endless = defineJob('${kind}', { queue: '${queue}' }).handle((_, { signal }) =>
      new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))))`,
  )
  const running = start(['work', module, '--concurrency', '3'], { env: store.env })
  t.after(async () => {
    running.child.kill('SIGINT')
    running.child.kill('SIGINT')
    await running.ended
  })
  const known = async (): Promise<boolean> => (await scale('--queues', queue)).workers > 0
  await until('the worker is known', known)
}

test('W6: what is due asks for processes, what is delayed does not, and where nobody works all kinds count', async () => {
  await enqueue('any', 'new', 90)
  await enqueue('later', 'new', 5, '--delay', '1h')
  const told = await scale('--queues', 'new')
  assert.deepEqual(
    [told.depth, told.ready, told.running, told.exact, told.workers, told.slots, told.p95WaitMs],
    [95, 90, 0, true, 0, 0, null],
  )
  assert.ok(told.oldestWaitMs! >= 0)
  const { why, ...processes } = told.processes
  assert.deepEqual(processes, { wanted: 3, by: 'depth', target: 4, min: 1, max: 256, slotsOfEach: 10 })
  assert.equal(why, '90 due jobs, where 4 a slot may wait')
  const asked = async (...args: string[]): Promise<number> => (await scale('--queues', 'new', ...args)).processes.wanted
  assert.equal(await asked('--target', '1', '--concurrency', '5', '--max', '16'), 16)
  assert.equal(await asked('--scale-by', 'wait', '--target', '1h', '--min', '0'), 0)
  await until('they have waited', async () => (await scale('--queues', 'new')).oldestWaitMs! > 20)
  assert.equal(await asked('--scale-by', 'wait', '--target', '10ms', '--min', '0'), 2)
  assert.equal((await scale('--queues', 'nobody')).processes.wanted, 1)
})

test('W6: a paused queue asks for nothing', async () => {
  await enqueue('held', 'held', 50)
  await store.run('queues', 'pause', 'held')
  const { ready, depth, queues, processes } = await scale('--queues', 'held', '--min', '0')
  assert.deepEqual([ready, depth, queues[0]!.paused, processes.wanted], [0, 50, true, 0])
})

test('W6: jobs that no worker alive can run ask for nothing, and what is busy holds what is there', async (t) => {
  await atWork(t, 'endless', 'mixed')
  await enqueue('endless', 'mixed', 10)
  await enqueue('nobody.runs', 'mixed', 90)
  let told = await scale('--queues', 'mixed', '--target', '1')
  // What was claimed ahead of slots that do not come free goes back.
  await until('the worker holds what it runs', async () => {
    told = await scale('--queues', 'mixed', '--target', '1')
    return told.busy === 3 && told.running === 3 && told.ready === 7
  })
  assert.deepEqual([told.depth, told.workers, told.slots, told.processes.slotsOfEach], [97, 1, 3, 3])
  assert.equal(told.processes.wanted, 3, 'for 7 jobs, not for 97')
})

test('W6: the p95 is of jobs that started, from their enqueue on', async (t) => {
  await enqueue('quick', 'quick', 20)
  const module = await handlerModule(
    await scratchFolder(t),
    `export const quick = defineJob('quick', { queue: 'quick' }).handle(() => {})`,
  )
  assert.equal((await store.run('work', module, '--until-empty')).code, 0)
  const told = await scale('--queues', 'quick')
  assert.deepEqual([told.completedMinute, told.ready, told.oldestWaitMs], [20, 0, null])
  assert.ok(told.p95WaitMs! > 0, `${told.p95WaitMs}`)
})

test('for people it is a table and a sentence', async () => {
  const { stdout, code } = await store.run('scale')
  assert.equal(code, 0)
  assert.match(stdout, /^QUEUE +READY +OLDEST +P95 WAIT +DEPTH +RUNNING +DONE\/MIN$/m)
  assert.match(stdout, /^held \(paused\) +0 +-/m)
  assert.match(
    stdout,
    /\n\n\d+ processes are asked for by depth: \d+ due jobs, where 4 a slot may wait; none is there\n$/,
  )
})

test('a store without a queue, and one that tells nothing, say so', async () => {
  const empty = await cliStore('scale_empty')
  try {
    const { code, stderr } = await empty.run('scale')
    assert.deepEqual([code, /there is no queue yet/.test(stderr)], [3, true])
  } finally {
    await empty.drop()
  }
  assert.match((await run(['scale', '--url', 'memory:'])).stderr, /no facet "diagnose"/)
})
