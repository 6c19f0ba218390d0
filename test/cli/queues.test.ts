/** Queues emptied in two ways: drained, with new jobs refused, and purged. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect } from '../../src/connect.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder, start } from './command.js'

let store: CliStore

before(async () => {
  store = await cliStore('queues')
})
after(() => store.drop())

async function enqueued(queue: string, count: number, ...more: string[]): Promise<void> {
  const input = Array.from({ length: count }, (_, n) => String(n)).join('\n')
  const args = ['enqueue', 'k', '--stdin-lines', '--queue', queue, ...more]
  assert.equal((await run(args, { env: store.env, input })).code, 0)
}

test('purge deletes what waits, of one queue, and says how many', async () => {
  await enqueued('purged', 3)
  await enqueued('purged', 2, '--delay', '1h')
  await enqueued('other', 1)
  const rehearsal = await store.run('queues', 'purge', 'purged', '--dry-run')
  assert.deepEqual(
    [rehearsal.code, rehearsal.stdout],
    [0, 'dry run, nothing was done: 5 waiting jobs of purged would be deleted\n'],
  )
  const { code, stdout } = await store.run('queues', 'purge', 'purged', '--yes')
  assert.deepEqual([code, stdout], [0, '5 deleted from purged\n'])
  const again = await store.json('queues', 'purge', 'purged', '--yes')
  assert.deepEqual(again, { queue: 'purged', dryRun: false, deleted: 0, ended: 'all' })
  const { jobs } = await store.json<{ jobs: unknown[] }>('jobs', 'list', '--state', 'pending', '--queue', 'other')
  assert.equal(jobs.length, 1)
})

test('a queue that nobody knows is neither made nor emptied', async () => {
  for (const word of ['purge', 'drain']) {
    const { code, stdout, stderr } = await store.run('queues', word, 'purgde')
    assert.deepEqual([code, stdout], [3, ''])
    assert.match(stderr, /there is no queue "purgde"; did you mean "purged"\? \(NOT_FOUND\)/)
  }
  const { queues } = await store.json<{ queues: { queue: string }[] }>('queues', 'list')
  assert.ok(!queues.some(({ queue }) => queue === 'purgde'))
})

test('a full queue refuses, and says how many wait and when to try again', async () => {
  const queue = await connect(store.env.LEASEHOLD_URL!, { schema: store.env.LEASEHOLD_SCHEMA! })
  try {
    await queue.limit('full', { depth: 3 })
  } finally {
    await queue.close()
  }
  const lines = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'full'], {
    env: store.env,
    input: '1\n2\n3\n4\n',
  })
  assert.deepEqual([lines.code, lines.stdout], [1, '3 created, 1 refused\n'])
  const told = /queue "full" is full: 3 jobs wait, 3 may; try again in 1s \(QUEUE_FULL\)/
  assert.match(lines.stderr, told)
  const single = await store.run('enqueue', 'k', '5', '--queue', 'full')
  assert.equal(single.code, 1)
  assert.match(single.stderr, told)
  assert.match(single.stderr, /fix: +let workers drain the queue, or raise its limit/)
  const { stdout } = await store.run('enqueue', 'k', '5', '--queue', 'full', '--json')
  const { error } = JSON.parse(stdout)
  assert.deepEqual([error.code, error.depth, error.limit, error.retryAfterMs], ['QUEUE_FULL', 3, 3, 1_000])
})

test('drain waits until a queue is empty, and says that it goes on refusing', async (t) => {
  const dir = await scratchFolder(t)
  const module = await handlerModule(dir, `export const k = defineJob('k', { queue: 'drained' }).handle(() => {})`)
  await enqueued('drained', 5)
  const drain = start(['queues', 'drain', 'drained'], { env: store.env })
  await drain.wrote(/no worker is alive that works on drained: none of the 5 waiting jobs will start/)
  const refused = await store.run('enqueue', 'k', '1', '--queue', 'drained')
  assert.match(refused.stderr, /\(QUEUE_DRAINING\)/)
  assert.equal((await store.run('work', module, '--until-empty')).code, 0)
  const { code, stdout, stderr } = await drain.ended
  assert.equal(code, 0)
  assert.match(stderr, /^drained refuses new jobs from now on, until it is resumed; waiting .*, 1h at most$/m)
  assert.match(stdout, /^drained is empty; it refuses new jobs until ".*leasehold queues resume drained"\n$/)
  assert.equal((await store.run('queues', 'resume', 'drained')).code, 0)
  assert.equal((await store.run('enqueue', 'k', '1', '--queue', 'drained')).code, 0)
})

test('a drain that is given up, by time or by Ctrl-C, says what is left and how to end it', async () => {
  await enqueued('stuck', 2)
  assert.equal((await store.run('queues', 'pause', 'stuck')).code, 0)
  const late = await store.run('queues', 'drain', 'stuck', '--timeout', '100ms')
  assert.equal(late.code, 1)
  assert.match(late.stderr, /stuck is paused: none of the 2 waiting jobs will start/)
  assert.match(late.stderr, /^error: queue "stuck" still has 2 jobs.*\(WAIT_TIMEOUT\)$/m)
  assert.match(late.stderr, /^fix: .*leasehold queues resume stuck/m)
  const drain = start(['queues', 'drain', 'stuck', '--json'], { env: store.env })
  await drain.wrote(/stuck is paused/)
  // A queue that is drained already refuses; so does this one.
  drain.child.kill('SIGINT')
  const { code, stdout, stderr } = await drain.ended
  assert.equal(code, 130)
  assert.deepEqual(JSON.parse(stdout), {
    queue: 'stuck',
    status: 'not empty',
    refusing: true,
    left: { count: 2, exact: true },
  })
  assert.match(stderr, /^stopped by Ctrl-C$/m)
})

test('a worker of a queue that is new to everybody says so', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `export const k = defineJob('k', { queue: 'mailbox' }).handle(() => {})`,
  )
  await enqueued('letters', 1)
  const typo = await store.run('work', module, '--queues', 'lettres,mailbox,letters', '--until-empty')
  assert.equal(typo.code, 0)
  assert.match(typo.stderr, /queue "lettres" is new to the store, and no handler names it; did you mean "letters"\?/)
  assert.doesNotMatch(typo.stderr, /"mailbox" is new|"letters" is new/)
})
