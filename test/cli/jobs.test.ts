/** Jobs, dead letters, queues and workers by the command line: as text, as JSON, and with the right exit code. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newJobId } from '../../src/core/id.js'
import { type CliStore, cliStore, handlerModule, scratchFolder } from './command.js'

interface JobDocument {
  id: string
  state: string
  payload: unknown
  queue: string
  priority: number
  idempotencyKey: string | null
  attempts: { used: number; max: number }
  dueAt: string | null
  endedAt: string | null
  reason?: string
  result?: unknown
  history: { entries: { outcome: string; error?: { message: string } }[] } | null
}

interface JobPage {
  jobs: JobDocument[]
  more: { state: string; after: string }[]
}

let store: CliStore

before(async () => {
  store = await cliStore('jobs')
})
after(() => store.drop())

async function enqueued(...args: string[]): Promise<string> {
  return (await store.json<{ id: string }>('enqueue', ...args)).id
}

async function outcomes(...args: string[]): Promise<{ code: number | null; words: string[] }> {
  const { code, stdout } = await store.run(...args, '--json')
  const { results } = JSON.parse(stdout) as { results: { outcome: string }[] }
  return { code, words: results.map(({ outcome }) => outcome) }
}

test('enqueue says where the job went; show knows all of it', async () => {
  const text = await store.run('enqueue', 'mail.send', '{"to":"ada"}', '--queue', 'mail', '--priority', 'high')
  assert.match(text.stdout, /^enqueued [0-9a-f-]{36} \(mail\.send in queue mail\)\n$/)
  const id = newJobId()
  const options = ['--queue', 'mail', '--delay', '1h', '--key', 'k\u001b[31m', '--priority', '15', '--id', id]
  const document = await store.json('enqueue', 'mail.send', '{"to":"bob"}', ...options)
  assert.deepEqual(document, { id, kind: 'mail.send', queue: 'mail', status: 'created' })
  const job = await store.json<JobDocument>('jobs', 'show', id)
  assert.deepEqual([job.state, job.queue, job.priority, job.payload], ['delayed', 'mail', 15, { to: 'bob' }])
  assert.equal(job.idempotencyKey, 'k\u001b[31m')
  assert.ok(Date.parse(job.dueAt!) > Date.now() + 3_000_000)
  const page = await store.run('jobs', 'show', id)
  assert.match(page.stdout, /state +delayed/)
  assert.match(page.stdout, /due +\d{4}-\d\d-\d\dT[\d:.]+Z \(in 59m/)
  assert.match(page.stdout, /key +k\\u001b\[31m/)
  assert.match(page.stdout, /Timeline\n.*enqueued into queue mail/)
})

test('a key makes one job; another payload under it is refused', async () => {
  const first = await store.json<{ id: string; status: string }>('enqueue', 'keyed', '1', '--key', 'one')
  const again = await store.json<{ id: string; status: string }>('enqueue', 'keyed', '1', '--key', 'one')
  assert.deepEqual([first.status, again.status, again.id], ['created', 'duplicate', first.id])
  const other = await store.run('enqueue', 'keyed', '2', '--key', 'one')
  assert.equal(other.code, 1)
  assert.match(other.stderr, /\(IDEMPOTENCY_MISMATCH\)/)
})

test('a list can be read page by page, and filtered', async () => {
  const ids: string[] = []
  for (const n of [1, 2, 3]) ids.push(await enqueued('paged', String(n), '--queue', 'paged'))
  const filter = ['jobs', 'list', '--state', 'ready', '--queue', 'paged', '--limit', '2']
  const first = await store.json<JobPage>(...filter)
  assert.deepEqual(
    first.jobs.map(({ id }) => id),
    ids.slice(0, 2),
  )
  const second = await store.json<JobPage>(...filter, '--after', first.more[0]!.after)
  assert.deepEqual(
    second.jobs.map(({ id }) => id),
    ids.slice(2),
  )
  assert.deepEqual(second.more, [])
  const text = await store.run(...filter)
  assert.match(text.stdout, /^STATE +ID +KIND/)
  assert.match(text.stdout, /more: --after \S+\n$/)
  const pending = await store.json<JobPage>('jobs', 'list', '--state', 'pending', '--kind', 'paged')
  assert.equal(pending.jobs.length, 3)
})

test('an empty list is an answer, and a job that is not there is none', async () => {
  const none = await store.run('jobs', 'list', '--queue', 'nobody')
  assert.deepEqual([none.code, none.stdout], [0, 'no jobs\n'])
  const show = await store.run('jobs', 'show', newJobId())
  assert.equal(show.code, 3)
  assert.match(show.stderr, /^error: no job .* is known.*\(NOT_FOUND\)$/m)
})

test('odd payloads stay in their cells', async () => {
  const payload = JSON.stringify({ text: '\u001b[2J\u009b1A\u202eabc\n日本語', long: 'x'.repeat(5_000) })
  await enqueued('odd', payload, '--queue', 'odd')
  const { stdout } = await store.run('jobs', 'list', '--queue', 'odd')
  assert.equal(stdout.trimEnd().split('\n').length, 2)
  assert.doesNotMatch(stdout, /[\u001b\u009b\u202e]/)
  assert.match(stdout, /\\u001b\[2J\\u009b1A\\u202eabc\\n日本語/)
  const { jobs } = await store.json<JobPage>('jobs', 'list', '--queue', 'odd')
  assert.deepEqual(jobs[0]!.payload, JSON.parse(payload))
})

test('cancel and retry answer for each job; 3 when not all was done', async () => {
  const waiting = await enqueued('steered', '1', '--delay', '1h')
  const other = await enqueued('steered', '2', '--delay', '1h')
  const unknown = newJobId()
  assert.deepEqual(await outcomes('jobs', 'retry', waiting), { code: 0, words: ['ok'] })
  assert.deepEqual(await outcomes('jobs', 'cancel', waiting, unknown, other), {
    code: 3,
    words: ['cancelled', 'unknown', 'cancelled'],
  })
  const { code, stdout } = await store.run('jobs', 'cancel', waiting, unknown)
  assert.equal(code, 3)
  assert.match(stdout, new RegExp(`${waiting} +too late: it has ended\n${unknown} +not found\n\n2 of 2 not done\n`))
})

test('dead letters are listed, shown, rehearsed and redriven', async (t) => {
  const module = await handlerModule(
    await scratchFolder(t),
    `export default [defineJob('doomed').handle(() => dead('no such user')), defineJob('fine').handle(() => ({ ok: true }))]`,
  )
  const ids = [await enqueued('doomed', '1'), await enqueued('doomed', '2')]
  const fine = await enqueued('fine')
  const worked = await store.run('work', module, '--until-empty')
  assert.equal(worked.code, 0)
  const list = await store.run('dead', 'list', '--kind', 'doomed')
  assert.match(list.stdout, /^dead: rejected +/m)
  assert.match(list.stdout, /Rejected: no such user/)
  const shown = await store.run('dead', 'show', ids[0]!)
  assert.match(shown.stdout, /attempt 1: rejected by its handler after \S+: Rejected: no such user/)
  assert.match(shown.stdout, /^Last error$/m)
  const alive = await store.run('dead', 'show', fine)
  assert.equal(alive.code, 3)
  assert.deepEqual((await store.json<JobDocument>('jobs', 'show', fine)).result, { ok: true })
  const rest = await outcomes('dead', 'redrive', ...ids, fine)
  assert.deepEqual([rest.code, rest.words], [3, ['ok', 'ok', 'not dead']])
})

test('a job says why it does not run, on a narrow terminal too, and to scripts', async () => {
  const id = await enqueued('held', '1', '--queue', 'held', '--delay', '2h', '--priority', 'high')
  await store.run('queues', 'pause', 'held')
  const { stdout } = await store.run('jobs', 'explain', id)
  assert.match(stdout, new RegExp(`^Job ${id}\n  held in queue held, priority 8 \\(high\\): delayed\n\nIt is held\n`))
  assert.match(stdout, /^ {2}1 it was delayed: not due until \d{4}-\d\d-\d\dT[\d:.]+Z \(in 1h 59m\)$/m)
  assert.match(
    stdout,
    /^ {2}2 queue held is paused: .*\n {4}npx leasehold queues resume held\n {2}3 no worker that is alive/m,
  )
  interface Told {
    at: string
    verdict: string
    clauses: { code: string; dueAt?: string }[]
  }
  const told = await store.json<Told>('jobs', 'explain', id)
  assert.deepEqual([told.verdict, ...told.clauses.map(({ code }) => code)], ['held', 'not due', 'paused', 'no worker'])
  assert.ok(Date.parse(told.clauses[0]!.dueAt!) - Date.parse(told.at) > 7_000_000)
  const unknown = await store.run('jobs', 'explain', newJobId())
  assert.equal(unknown.code, 3)
  assert.match(unknown.stderr, /\(NOT_FOUND\)/)
  assert.equal((await store.run('jobs', 'explain', 'held')).code, 2)
})

test('queues are listed with counts, paused and resumed; an unknown one is not made up', async () => {
  await enqueued('counted', '1', '--queue', 'counted')
  const paused = await store.run('queues', 'pause', 'counted', 'cuonted')
  assert.equal(paused.code, 3)
  assert.equal(paused.stdout, 'counted: paused\ncuonted: no such queue; nothing was done\n')
  const text = await store.run('queues', 'list')
  assert.match(text.stdout, /^counted +paused/m)
  interface Queues {
    queues: { queue: string; paused: boolean; counts: { ready: { count: number; exact: boolean } } }[]
  }
  const { queues } = await store.json<Queues>('queues', 'list')
  const found = queues.find(({ queue }) => queue === 'counted')!
  assert.deepEqual([found.paused, found.counts.ready], [true, { count: 1, exact: true }])
  assert.deepEqual(await store.json('queues', 'resume', 'counted'), {
    results: [{ queue: 'counted', status: 'resumed' }],
  })
})

test('a queue is limited, says what holds, and is let go again', async () => {
  await enqueued('limited', '1', '--queue', 'limited')
  const limit = (...given: string[]) => store.run('queues', 'limit', 'limited', ...given)
  assert.equal((await limit()).stdout, 'limited: no limits\n')
  const set = await limit('--concurrency', '20', '--rate', '100/s', '--burst', '30')
  assert.equal(set.stdout, 'limited: 20 at once, 100/s (burst 30)\n')
  assert.equal((await limit('--rate', '1000/15m')).stdout, 'limited: 20 at once, 1,000/15m\n')
  const found = await store.json<{ queues: { queue: string; limits: unknown }[] }>('queues', 'list')
  assert.deepEqual(found.queues.find(({ queue }) => queue === 'limited')?.limits, {
    concurrency: 20,
    rate: { limit: 1_000, perMs: 900_000, burst: 1_000 },
    depth: null,
    intake: null,
    perKey: null,
  })
  assert.equal((await limit('--rate', 'none', '--concurrency', 'none')).stdout, 'limited: no limits\n')
  const depth = await limit('--depth', '1000', '--depth-per-tenant', '100')
  assert.equal(depth.stdout, 'limited: 1,000 waiting (100 of a tenant)\n')
  assert.equal((await limit('--depth', '500')).stdout, 'limited: 500 waiting (100 of a tenant)\n')
  assert.equal((await limit('--depth-per-tenant', '5')).stdout, 'limited: 500 waiting (5 of a tenant)\n')
  assert.equal((await limit('--depth-per-tenant', 'none')).stdout, 'limited: 500 waiting\n')
  assert.equal((await limit('--depth', 'none')).stdout, 'limited: no limits\n')
  const intake = await limit('--intake', '100/s', '--intake-burst', '200')
  assert.equal(intake.stdout, 'limited: 100/s (burst 200) coming in\n')
  assert.equal((await limit('--intake', 'none')).stdout, 'limited: no limits\n')
  assert.equal((await store.run('queues', 'limit', 'limted')).code, 3)
  const early = await store.run('queues', 'limit', 'early', '--rate', '1/s')
  assert.deepEqual([early.code, early.stdout], [0, 'early: 1/s (a new queue: it has had no job yet)\n'])
  for (const wrong of [
    ['--rate', '5'],
    ['--rate', '0/s'],
    ['--rate', '5/0s'],
    ['--burst', '5'],
    ['--concurrency', '0'],
    ['--depth', '10001'],
    ['--depth-per-tenant', '5'],
    ['--intake-burst', '5'],
  ])
    assert.equal((await limit(...wrong)).code, 2, wrong.join(' '))
})

test('nobody works, and that is an answer', async () => {
  assert.equal((await store.run('workers')).stdout, 'no workers are alive\n')
  assert.deepEqual(await store.json('workers'), { workers: [] })
})
