/** What goes on: queues at work, and jobs as they end. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder, shell, start } from './command.js'

interface Stats {
  at: string
  queues: {
    queue: string
    paused: boolean
    counts: Record<string, { count: number; exact: boolean }>
    oldestReadyMs: number | null
    completedMinute: { count: number; exact: boolean }
    completedHour: { count: number; exact: boolean }
    workers: number
    slots: number
  }[]
}

interface EndingLine {
  id: string
  kind: string
  queue: string
  state: string
  endedAt: string
  reason?: string
  error?: { message: string }
}

let store: CliStore

before(async () => {
  store = await cliStore('stats')
})
after(() => store.drop())

async function enqueued(kind: string, count: number): Promise<void> {
  const input = Array.from({ length: count }, (_, n) => String(n)).join('\n')
  assert.equal((await run(['enqueue', kind, '--stdin-lines', '--queue', kind], { env: store.env, input })).code, 0)
}

const HANDLERS = `
  const good = defineJob('good', { queue: 'good' }).handle(() => {})
  const bad = defineJob('bad', { queue: 'bad' }).handle((n) => dead('no user ' + n + ' \\u001b[2J'))
  export default [good, bad]`

async function worked(t: TestContext, ...args: string[]): Promise<void> {
  const dir = await scratchFolder(t)
  const { code, stderr } = await store.run('work', await handlerModule(dir, HANDLERS), '--until-empty', ...args)
  assert.equal(code, 0, stderr)
}

function linesOf(stdout: string): EndingLine[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as EndingLine)
}

test('stats tell of each queue what waits and for how long, what was done, and who works', async (t) => {
  await enqueued('good', 7)
  await worked(t)
  await enqueued('bad', 3)
  const dir = await scratchFolder(t)
  const text = `export const idle = defineJob('idle', { queue: 'good' }).handle(() => {})`
  const worker = start(['work', await handlerModule(dir, text), '--concurrency', '4'], { env: store.env })
  await worker.wrote(/worker.started/)
  let found: Stats
  do found = await store.json<Stats>('stats')
  while (found.queues.find(({ queue }) => queue === 'good')!.workers === 0)
  const [bad, good] = ['bad', 'good'].map((name) => found.queues.find(({ queue }) => queue === name))
  assert.deepEqual([good!.queue, good!.workers, good!.slots, good!.oldestReadyMs], ['good', 1, 4, null])
  assert.deepEqual(
    [good!.completedMinute, good!.completedHour],
    [
      { count: 7, exact: true },
      { count: 7, exact: true },
    ],
  )
  assert.deepEqual([bad!.queue, bad!.counts.ready, bad!.workers], ['bad', { count: 3, exact: true }, 0])
  assert.ok(bad!.oldestReadyMs! > 0)
  const table = await store.run('stats', '--queue', 'bad')
  assert.match(table.stdout, /^QUEUE +READY +OLDEST +RUNNING .*\nbad +3 +[\d.]+m?s/)
  assert.doesNotMatch(table.stdout, /good/)
  worker.child.kill('SIGTERM')
  await worker.ended
  const unknown = await store.run('stats', '--queue', 'goood')
  assert.equal(unknown.code, 3)
})

test('stats --watch goes on until Ctrl-C; into a pipe it is lines of JSON, or plain text', async () => {
  const watched = start(['stats', '--watch', '--every', '500ms', '--json'], { env: store.env })
  await watched.wrote(/\n.*\n/)
  watched.child.kill('SIGINT')
  const { code, stdout, stderr } = await watched.ended
  assert.deepEqual([code, stderr], [0, ''])
  for (const line of stdout.trimEnd().split('\n')) assert.ok((JSON.parse(line) as Stats).queues.length >= 2)
  const plain = start(['stats', '--watch', '--every', '500ms'], { env: store.env })
  await plain.wrote(/QUEUE[\s\S]*QUEUE/)
  plain.child.kill('SIGINT')
  assert.doesNotMatch((await plain.ended).stdout, /\u001b/)
  const left = await shell(`leasehold stats --watch --every 500ms --json | head -n 1; echo "\${PIPESTATUS[0]}"`, {
    env: store.env,
  })
  assert.match(left.stdout, /\n0\n$/)
  assert.equal(left.stderr, '')
})

test('stats come in the order of need: who waits longest, then who has most dead letters, then by name', async (t) => {
  const own = await cliStore('order')
  t.after(() => own.drop())
  const letters = new Map([
    ['some', 1],
    ['many', 3],
    ['none', 0],
    ['also', 0],
  ])
  const handlers = [...letters.keys()].map(
    (name) =>
      `defineJob('${name}', { queue: '${name}' }).handle((n) => (n < ${letters.get(name)} ? dead('no') : 'done'))`,
  )
  for (const name of letters.keys())
    await run(['enqueue', name, '--stdin-lines', '--queue', name], { env: own.env, input: '0\n1\n2' })
  const module = await handlerModule(await scratchFolder(t), `export default [${handlers.join(',')}]`)
  assert.equal((await own.run('work', module, '--until-empty')).code, 0)
  await own.run('enqueue', 'none', '--queue', 'waits')
  for (;;) {
    const { queues } = await own.json<Stats>('stats')
    // Less than a second of waiting is none.
    if ((queues[0]!.oldestReadyMs ?? 0) < 1_000 && queues[0]!.queue !== 'waits') continue
    assert.deepEqual(
      queues.map(({ queue }) => queue),
      ['waits', 'many', 'some', 'also', 'none'],
    )
    return
  }
})

for (const command of [
  ['stats', '--watch', '--every', '500ms'],
  ['tail', '--since', '0s'],
])
  test(`${command[0]} goes on when the store is away for a while, and says so`, async (t) => {
    const proxy = await TcpProxy.to(store.env.LEASEHOLD_URL!)
    t.after(() => proxy.close())
    const watched = start(command, { env: { ...store.env, LEASEHOLD_URL: proxy.url } })
    t.after(() => watched.child.kill('SIGKILL'))
    // One that never had an answer gives up.
    if (command[0] === 'stats') await watched.wrote(/QUEUE/)
    else await until('its second look', () => proxy.sent.filter((text) => /lh_endings/.test(text)).length > 1)
    await proxy.refuse()
    await watched.wrote(/the store does not answer, trying on: /)
    await proxy.accept()
    await watched.wrote(/the store answers again/)
    watched.child.kill('SIGINT')
    assert.equal((await watched.ended).code, 0)
  })

test('tail tells of endings as they come, each once, and of dead ones why', async (t) => {
  await worked(t)
  const tail = start(['tail', '--json', '--since', '0s'], { env: store.env })
  t.after(() => tail.child.kill('SIGKILL'))
  // It has begun once it has told of something; what ends from here on is its to tell.
  const seen = (): EndingLine[] => linesOf(tail.stdout().replace(/[^\n]*$/, ''))
  while (seen().length === 0) {
    await enqueued('good', 1)
    await worked(t)
  }
  const first = seen()[0]!
  await enqueued('good', 20)
  await enqueued('bad', 5)
  await worked(t)
  const all = linesOf((await store.run('tail', '--no-follow', '--since', '1h', '--json')).stdout)
  const expected = all.slice(all.findIndex(({ id }) => id === first.id))
  assert.ok(expected.length >= 26)
  while (seen().length < expected.length) await new Promise((next) => tail.child.stdout!.once('data', next))
  tail.child.kill('SIGINT')
  const { code, stdout, stderr } = await tail.ended
  assert.deepEqual([code, stderr], [0, ''], 'Ctrl-C is the way to end it')
  assert.deepEqual(
    linesOf(stdout).map(({ id }) => id),
    expected.map(({ id }) => id),
  )
  const bad = expected.find(({ state }) => state === 'dead')!
  assert.deepEqual([bad.kind, bad.queue, bad.reason], ['bad', 'bad', 'rejected'])
  assert.match(bad.error!.message, /^no user \d/)
})

test('tail --no-follow ends with what there is; filters and lines for people', async () => {
  const all = await store.run('tail', '--no-follow', '--since', '1h', '--json')
  const dead = await store.run('tail', '--no-follow', '--since', '1h', '--state', 'dead')
  assert.deepEqual([all.code, dead.code], [0, 0])
  const lines = dead.stdout.trimEnd().split('\n')
  assert.equal(lines.length, linesOf(all.stdout).filter(({ state }) => state === 'dead').length)
  for (const line of lines)
    assert.match(
      line,
      /^\d\d:\d\d:\d\d\.\d{3}Z dead {6}bad [0-9a-f-]{36} after \S+ rejected: Rejected: no user \d+ \\u001b\[2J$/,
    )
  const kind = await store.run('tail', '--no-follow', '--since', '1h', '--kind', 'good', '--json')
  assert.ok(linesOf(kind.stdout).every((line) => line.kind === 'good'))
  const left = await shell(`leasehold tail --since 1h --no-follow | head -n 2; echo "\${PIPESTATUS[0]}"`, {
    env: store.env,
  })
  assert.match(left.stdout, /^.* \w+ +.*\n.*\n0\n$/)
  const typo = start(['tail', '--queue', 'goodd'], { env: store.env })
  await typo.wrote(/there is no queue "goodd" yet; did you mean "good"\?/)
  typo.child.kill('SIGINT')
  assert.equal((await typo.ended).code, 0)
})
