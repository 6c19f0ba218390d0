/** Dead letters by group, and everything that takes filters: rehearsed, done, refused, cut off and gone on with. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { connect, defineJob, newJobId } from '../../src/index.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder, start } from './command.js'

interface Bulk {
  matched: number
  done: number
  /** Of a dry run. */
  expected?: number
  answers: Record<string, number>
  ended: string
  dryRun: boolean
  sample: { id: string; kind: string; queue: string }[]
}

interface Groups {
  groups: { queue: string; kind: string; reason: string; fingerprint: string; count: { count: number } }[]
  complete: boolean
}

let store: CliStore

before(async () => {
  store = await cliStore('bulk')
})
after(() => store.drop())

async function enqueued(kind: string, count: number, ...more: string[]): Promise<void> {
  const input = Array.from({ length: count }, (_, n) => `{"user":${n}}`).join('\n')
  const { code, stderr } = await run(['enqueue', kind, '--stdin-lines', ...more], { env: store.env, input })
  assert.equal(code, 0, stderr)
}

/** Jobs of the kind that die at once: their handler rejects them. */
async function dead(t: TestContext, kind: string, count: number): Promise<void> {
  const dir = await scratchFolder(t)
  const text = `export const all = defineJob('${kind}', { queue: '${kind}' }).handle(({ user }) => dead('no user ' + user + ' \\u001b[31m'))`
  await enqueued(kind, count, '--queue', kind)
  const { code, stderr } = await run(['work', await handlerModule(dir, text), '--until-empty'], { env: store.env })
  assert.equal(code, 0, stderr)
}

async function bulk(...args: string[]): Promise<Bulk & { code: number | null }> {
  const { code, stdout, stderr } = await store.run(...args, '--json')
  try {
    return { ...(JSON.parse(stdout) as Bulk), code }
  } catch {
    throw new Error(`${stdout}${stderr}`)
  }
}

async function waiting(queue: string): Promise<number> {
  interface Queues {
    queues: { queue: string; counts: Record<string, { count: number }> }[]
  }
  const { queues } = await store.json<Queues>('queues', 'list')
  const { counts } = queues.find((one) => one.queue === queue)!
  return counts.ready!.count + counts.delayed!.count + counts.retrying!.count
}

test('dead letters are grouped by what they died of, and a group is redriven by its fingerprint', async (t) => {
  await dead(t, 'grouped', 12)
  const { groups, complete } = await store.json<Groups>('dead', 'group', '--kind', 'grouped')
  assert.equal(complete, true)
  assert.deepEqual(
    groups.map(({ queue, kind, reason, count }) => [queue, kind, reason, count.count]),
    [['grouped', 'grouped', 'rejected', 12]],
  )
  const print = groups[0]!.fingerprint
  const text = await store.run('dead', 'group', '--kind', 'grouped')
  assert.match(
    text.stdout,
    new RegExp(`^JOBS .*\\n +12 +grouped +grouped +rejected .* ${print} +Rejected: no user \\d+ `),
  )
  assert.doesNotMatch(text.stdout, /\u001b/)
  const list = await store.run('dead', 'list', '--fingerprint', print, '--limit', '5')
  assert.equal(list.stdout.match(/dead: rejected/g)!.length, 5)

  const rehearsal = await bulk('dead', 'redrive', '--fingerprint', print, '--dry-run')
  const { code, dryRun, matched, done, expected, answers } = rehearsal
  assert.deepEqual([code, dryRun, matched, done, expected, answers], [0, true, 12, 0, 12, { ok: 12 }])
  assert.equal(rehearsal.sample.length, 10)
  const said = await store.run('dead', 'redrive', '--fingerprint', print, '--dry-run')
  assert.match(
    said.stdout,
    /^dry run, nothing was done\n\nJOBS +OUTCOME\n +12 +would be redriven\n[\s\S]*… and 2 more\n$/,
  )
  assert.equal(await waiting('grouped'), 0)

  const some = await bulk('dead', 'redrive', '--fingerprint', print, '--max', '5')
  assert.deepEqual([some.code, some.done, some.ended], [0, 5, 'limit'])
  const rest = await store.run('dead', 'redrive', '--fingerprint', print, '--rate', '600/m')
  assert.deepEqual([rest.code, rest.stdout], [0, '7 redriven\n'])
  assert.equal(await waiting('grouped'), 12)
  const nothing = await store.run('dead', 'redrive', '--fingerprint', print)
  assert.deepEqual([nothing.code, nothing.stdout], [3, 'no dead letter matches\n'])
})

test('nothing is deleted where nobody can be asked, unless it is said', async (t) => {
  await dead(t, 'deleted', 4)
  const id = (await store.json<{ jobs: { id: string }[] }>('dead', 'list', '--kind', 'deleted')).jobs[0]!.id
  for (const args of [
    ['dead', 'discard', '--kind', 'deleted'],
    ['dead', 'discard', id],
    ['jobs', 'cancel', '--kind', 'deleted'],
    ['queues', 'purge', 'deleted'],
  ]) {
    const { code, stdout, stderr } = await store.run(...args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, /nothing was done.*\(NOT_CONFIRMED\)\nfix: +give --yes/)
  }
  assert.equal((await bulk('dead', 'discard', '--kind', 'deleted', '--dry-run')).expected, 4)
  const one = await store.json<{ results: unknown }>('dead', 'discard', id, '--yes')
  assert.deepEqual(one.results, [{ id, outcome: 'discarded' }])
  const old = await bulk('dead', 'discard', '--kind', 'deleted', '--older-than', '1h', '--yes')
  assert.deepEqual([old.code, old.matched], [3, 0])
  const rest = await store.run('dead', 'discard', '--kind', 'deleted', '--newer-than', '1h', '--yes')
  assert.deepEqual([rest.code, rest.stdout], [0, '3 discarded\n'])
  assert.equal((await store.run('jobs', 'show', id)).code, 3)
})

test('a rehearsal by ids says for each what would become of it', async (t) => {
  await dead(t, 'named', 1)
  await enqueued('waits', 1, '--delay', '1h', '--queue', 'waits')
  const dead1 = (await store.json<{ jobs: { id: string }[] }>('dead', 'list', '--kind', 'named')).jobs[0]!.id
  const waits = (await store.json<{ jobs: { id: string }[] }>('jobs', 'list', '--kind', 'waits')).jobs[0]!.id
  const ids = [dead1, waits, newJobId()]
  const words = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await store.run(...args, ...ids, '--dry-run', '--json')
    return (JSON.parse(stdout) as { results: { outcome: string }[] }).results.map(({ outcome }) => outcome)
  }
  assert.deepEqual(await words('dead', 'redrive'), ['ok', 'not dead', 'unknown'])
  assert.deepEqual(await words('dead', 'discard'), ['discarded', 'not dead', 'unknown'])
  assert.deepEqual(await words('jobs', 'cancel'), ['ended', 'cancelled', 'unknown'])
  assert.deepEqual(await words('jobs', 'retry'), ['ended', 'ok', 'unknown'])
  assert.equal((await store.json<{ state: string }>('jobs', 'show', waits)).state, 'delayed')
})

test('jobs are cancelled and started by filter', async () => {
  await enqueued('steer', 6, '--queue', 'steer', '--delay', '1h')
  const started = await bulk('jobs', 'retry', '--queue', 'steer', '--state', 'delayed', '--max', '2')
  assert.deepEqual([started.code, started.answers], [0, { ok: 2 }])
  const none = await bulk('jobs', 'retry', '--queue', 'steer')
  assert.deepEqual([none.code, none.matched], [3, 0], 'delayed ones were meant for later')
  const some = await bulk('jobs', 'cancel', '--queue', 'steer', '--state', 'delayed', '--yes')
  assert.deepEqual([some.code, some.answers], [0, { cancelled: 4 }])
  const text = await store.run('jobs', 'cancel', '--kind', 'steer', '--yes')
  assert.deepEqual([text.code, text.stdout], [0, '2 cancelled\n'])
})

test('Ctrl-C in the middle says what was done, and the same command goes on with the rest', async (t) => {
  await dead(t, 'cut', 40)
  const command = ['dead', 'redrive', '--kind', 'cut', '--rate', '10/s', '--json']
  const first = start(command, { env: store.env })
  // The first jobs are back: it is at it.
  while ((await waiting('cut')) === 0 && first.child.exitCode === null);
  first.child.kill('SIGINT')
  const { code, stdout, stderr } = await first.ended
  assert.equal(code, 130, stderr)
  assert.match(stderr, /^stopped by Ctrl-C; the same command goes on with the rest$/m)
  const cut = JSON.parse(stdout) as Bulk
  assert.equal(cut.ended, 'stopped')
  assert.ok(cut.done > 0 && cut.done < 40, `${cut.done}`)
  assert.equal(await waiting('cut'), cut.done)
  const rest = await bulk('dead', 'redrive', '--kind', 'cut')
  assert.deepEqual([rest.code, rest.done, rest.ended], [0, 40 - cut.done, 'all'])
})

test('ids at a rate are cut off by Ctrl-C, too, and it says from where on', async (t) => {
  await dead(t, 'cutids', 30)
  const { jobs } = await store.json<{ jobs: { id: string }[] }>('dead', 'list', '--kind', 'cutids')
  const input = jobs.map(({ id }) => id).join('\n')
  const running = start(['dead', 'redrive', '-', '--rate', '10', '--json'], { env: store.env, input })
  while ((await waiting('cutids')) === 0 && running.child.exitCode === null);
  running.child.kill('SIGTERM')
  const { code, stdout, stderr } = await running.ended
  assert.equal(code, 143, stderr)
  const { results } = JSON.parse(stdout) as { results: { id: string; outcome: string }[] }
  assert.ok(results.length > 0 && results.length < 30)
  assert.match(
    stderr,
    new RegExp(`${30 - results.length} of 30 ids were not come to, from ${jobs[results.length]!.id} on`),
  )
})

test('at-most-once jobs that may have run are counted apart, and only --force takes them', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `export const once = defineJob('once', { queue: 'once', delivery: 'at-most-once' }).handle((_, { log }) => (log('began'), new Promise(() => {})))`,
  )
  // By the library, as the command line does not know the policy of a kind.
  const queue = await connect(store.env.LEASEHOLD_URL!, { schema: store.env.LEASEHOLD_SCHEMA! })
  await queue.enqueue(defineJob('once', { queue: 'once', delivery: 'at-most-once' }))
  await queue.close()
  const worker = start(['work', module, '--queues', 'once', '--grace', '100ms'], { env: store.env })
  await worker.wrote(/"began"/)
  worker.child.kill('SIGTERM')
  await worker.ended
  const plain = await bulk('dead', 'redrive', '--queue', 'once')
  assert.deepEqual([plain.code, plain.answers], [3, { 'needs force': 1 }])
  const said = await store.run('dead', 'redrive', '--queue', 'once')
  assert.match(said.stdout, /^JOBS +OUTCOME\n +1 +it runs at most once and may have run; --force/)
  assert.deepEqual((await bulk('dead', 'redrive', '--queue', 'once', '--force')).answers, { ok: 1 })
})
