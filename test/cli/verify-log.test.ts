/** `leasehold verify --log`: the log of real workers is judged, and one that was tampered with is found out. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type CliStore, cliStore, handlerModule, parsed, run, scratchFolder } from './command.js'

interface Recorded {
  verdict: 'kept' | 'broken' | 'not judged'
  lines: { read: number; skipped: number }
  jobs: number
  rules: { rule: string; judged?: number; broken: number }[]
}

let store: CliStore
let log: string[]
let dir: string

before(async () => {
  store = await cliStore('verify_log')
  dir = await mkdtemp(join(tmpdir(), 'leasehold-verify-log-'))
  const module = await handlerModule(
    dir,
    `export const good = defineJob('good').handle(() => {})
     export const bad = defineJob('bad', { retry: { attempts: 2, backoff: { base: '10ms' } } }).handle(() => { throw new Error('no') })`,
  )
  for (const kind of ['good', 'good', 'bad']) assert.equal((await store.run('enqueue', kind)).code, 0)
  const { code, stdout, stderr } = await store.run(
    'work',
    module,
    '--until-empty',
    '--max',
    '20s',
    '--log-level',
    'debug',
  )
  assert.equal(code, 0, stderr)
  log = stdout.split('\n').filter((line) => line.startsWith('{'))
})
after(async () => {
  await store.drop()
  await rm(dir, { recursive: true, force: true, maxRetries: 20 })
})

async function judged(lines: readonly string[]): Promise<{ code: number | null; answer: Recorded }> {
  const { code, stdout, stderr } = await run(['verify', '--log', '-', '--json'], { input: lines.join('\n') })
  return { code, answer: parsed<Recorded>(stdout, stderr) }
}

function lineOf(event: string): string {
  const found = log.find((line) => line.includes(`"event":"${event}"`))
  assert.ok(found, `${event} is in the log`)
  return found
}

test('a real log is kept to, with as many lines as it has, and says what was judged', async () => {
  const { code, answer } = await judged([...log, 'a line of somebody else'])
  assert.deepEqual([code, answer.verdict], [0, 'kept'])
  assert.deepEqual(answer.lines, { read: log.length, skipped: 1 })
  assert.ok(answer.rules.some((rule) => (rule.judged ?? 0) > 0))
})

test('the same from a file, for people', async (t) => {
  const path = join(await scratchFolder(t), 'events.jsonl')
  await writeFile(path, `${log.join('\n')}\n`)
  const { code, stdout } = await run(['verify', '--log', path])
  assert.equal(code, 0)
  assert.match(stdout, /^\d+ events of \d+ jobs; 0 lines that tell of no event\n\nRULE +JUDGED +BROKEN\n/)
  assert.match(stdout, /\nKept: \d+ of \d+ rules found something to judge in this log, and nothing wrong\.\n$/)
})

test('a job that is told to be completed twice, by two workers, is found', async () => {
  const again = (event: string): string =>
    lineOf(event).replaceAll(/"worker":"[^"]+"/g, '"worker":"01900000-0000-7000-8000-000000000000"')
  const other = ['worker.started', 'job.claimed', 'job.started', 'job.completed']
  const first = JSON.parse(lineOf('job.completed')) as { jobId: string }
  const twice = other.map((event) => again(event).replace(/"jobId":"[^"]+"/, `"jobId":"${first.jobId}"`))
  const { code, answer } = await judged([...log, ...twice])
  assert.deepEqual([code, answer.verdict], [4, 'broken'])
  assert.ok(
    answer.rules.some((rule) => rule.broken > 0 && /one end is told/.test(rule.rule)),
    JSON.stringify(answer.rules),
  )
})

test('a file that is no log, and one that is not there, are told as that', async (t) => {
  const path = join(await scratchFolder(t), 'other.txt')
  await writeFile(path, 'nothing\nof ours\n')
  const other = await run(['verify', '--log', path])
  assert.equal(other.code, 2)
  assert.match(other.stderr, /no line of the log tells of an event/)
  assert.equal((await run(['verify', '--log', `${path}.gone`])).code, 3)
})
