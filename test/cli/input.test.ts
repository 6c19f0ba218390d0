/** What is piped in and out: payloads and ids on stdin, and readers that leave early. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type CliStore, cliStore, run, shell } from './command.js'

let store: CliStore

before(async () => {
  store = await cliStore('input')
})
after(() => store.drop())

async function payloads(queue: string): Promise<unknown[]> {
  const { jobs } = await store.json<{ jobs: { payload: unknown }[] }>(
    'jobs',
    'list',
    '--state',
    'ready',
    '--queue',
    queue,
  )
  return jobs.map(({ payload }) => payload)
}

test('a payload from stdin', async () => {
  const { code } = await run(['enqueue', 'k', '-', '--queue', 'one'], { env: store.env, input: '{"n":\n 1}\n' })
  assert.equal(code, 0)
  assert.deepEqual(await payloads('one'), [{ n: 1 }])
})

test('a job for each line; empty lines are skipped, the lines are counted', async () => {
  const lines = { env: store.env, input: '{"n":1}\n\n{"n":2}\r\n3' }
  const text = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'many'], lines)
  assert.deepEqual([text.code, text.stdout, text.stderr], [0, '3 created\n', ''])
  assert.deepEqual(await payloads('many'), [{ n: 1 }, { n: 2 }, 3])
  const { stdout } = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'many', '--json'], lines)
  const results = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { line: number; status: string })
  assert.deepEqual(
    results.map(({ line, status }) => [line, status]),
    [
      [1, 'created'],
      [3, 'created'],
      [4, 'created'],
    ],
  )
})

test('lines that are no JSON are told by number and reason; the others are stored', async () => {
  const bad = { env: store.env, input: '1\n2\n{"n":\n4\n\nno\n6\n' }
  const { code, stdout, stderr } = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'bad'], bad)
  assert.deepEqual([code, stdout], [1, '4 created, 2 refused\n'])
  assert.match(stderr, /^line 3: refused: it is not JSON.*\(INVALID_PAYLOAD\)\nline 6: refused: it is not JSON.*\n$/)
  assert.deepEqual(await payloads('bad'), [1, 2, 4, 6])
  const json = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'bad', '--json'], bad)
  assert.equal(json.code, 1)
  const told = json.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { line: number; status: string })
  assert.deepEqual(
    told.sort((one, other) => one.line - other.line).map(({ line, status }) => `${line} ${status}`),
    ['1 created', '2 created', '3 refused', '4 created', '6 refused', '7 created'],
  )
  assert.match(json.stderr, /^line 3: refused: /)
  assert.match(json.stderr, /^4 created, 2 refused$/m)
})

test('a reader that leaves ends the enqueuing, which says how many are stored', async () => {
  const lines = `for n in $(seq 1 30000); do echo "$n"; done`
  const command = 'leasehold enqueue k --stdin-lines --queue gone --json'
  const line = `{ ${lines}; sleep 5; } | ${command} | head -n 1; echo "\${PIPESTATUS[1]}"`
  const { stdout, stderr } = await shell(line, { env: store.env })
  assert.match(stdout, /\n1\n$/)
  const stored = /^stopped before the end of stdin \(nobody reads the answer any more\): (\d+) created$/m.exec(
    stderr,
  )?.[1]
  assert.ok(stored !== undefined, stderr)
  const { queues } = await store.json<{ queues: { queue: string; counts: { ready: { count: number } } }[] }>(
    'queues',
    'list',
  )
  assert.equal(queues.find(({ queue }) => queue === 'gone')!.counts.ready.count, Number(stored))
})

test('the command line may say how often and how long', async () => {
  const policy = ['--attempts', '2', '--timeout', '90s']
  const one = await store.json<{ id: string }>('enqueue', 'k', '1', '--queue', 'policy', ...policy)
  const shown = await store.json<{ policy: { attempts: number; timeoutMs: number } }>('jobs', 'show', one.id)
  assert.deepEqual([shown.policy.attempts, shown.policy.timeoutMs], [2, 90_000])
})

test('a line that is refused sinks no other', async () => {
  const input = `1\n"${'x'.repeat(1_100_000)}"\n3\n`
  const { code, stdout, stderr } = await run(['enqueue', 'k', '--stdin-lines', '--queue', 'refused'], {
    env: store.env,
    input,
  })
  assert.equal(code, 1)
  assert.equal(stdout, '2 created, 1 refused\n')
  assert.match(stderr, /^line 2: refused: .*\(PAYLOAD_TOO_LARGE\)$/m)
  assert.deepEqual(await payloads('refused'), [1, 3])
})

test('ids on stdin', async () => {
  const ids: string[] = []
  for (const n of ['1', '2']) ids.push((await store.json<{ id: string }>('enqueue', 'k', n, '--queue', 'ids')).id)
  const input = `${ids.join('\n')}\n\n`
  const { code, stdout } = await run(['jobs', 'cancel', '-', '--json'], { env: store.env, input })
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(stdout), { results: ids.map((id) => ({ id, outcome: 'cancelled' })) })
  const none = await run(['jobs', 'cancel', '-'], { env: store.env, input: '\n' })
  assert.equal(none.code, 2)
})

test('a reader that leaves early is no failure and gets no word', async () => {
  const input = Array.from({ length: 900 }, (_, n) => JSON.stringify({ n, pad: 'x'.repeat(400) })).join('\n')
  await run(['enqueue', 'k', '--stdin-lines', '--queue', 'long'], { env: store.env, input })
  for (const form of ['', '--json']) {
    const line = `leasehold jobs list --state ready --queue long --limit 900 ${form} | head -c 20; echo "\${PIPESTATUS[0]}"`
    const { stdout, stderr } = await shell(line, { env: store.env })
    assert.match(stdout, /0\n$/)
    assert.equal(stderr, '')
  }
})

test('through a pipe there are no colours, and lines are whole', async () => {
  const { stdout } = await store.run('jobs', 'list', '--queue', 'long')
  assert.doesNotMatch(stdout, /\u001b/)
  assert.match(stdout, /x{300}/)
})
