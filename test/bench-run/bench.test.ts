/** Every scenario runs, in small sizes, on a real server, and its lines have the keys that others rely on. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url))

type Line = Record<string, unknown>

const COSTS = ['roundTrips', 'rowWrites', 'walBytes', 'deadTuples', 'serverCpuUs']
const PERCENTILES = ['p50Ms', 'p95Ms', 'p99Ms']

let lines: Line[]
let pid: number

before(async () => {
  const { code, stdout, stderr, ...all } = await bench('all', '--quick', '--json')
  assert.equal(code, 0, stderr)
  pid = all.pid
  lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
})

interface Ended {
  pid: number
  code: number | null
  stdout: string
  stderr: string
}

function bench(...words: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...words], {
    env: { ...process.env, LEASEHOLD_BENCH_URL: serverUrl() },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ pid: child.pid!, code, ...output })))
}

function of(scenario: string): Line[] {
  return lines.filter((line) => line.scenario === scenario)
}

/** Numbers above zero; costs may be zero. */
function hasNumbers(line: Line, keys: readonly string[], min = Number.MIN_VALUE): void {
  for (const key of keys) {
    const value = line[key]
    assert.ok(typeof value === 'number' && value >= min, `${line.scenario}: ${key} is ${JSON.stringify(value)}`)
  }
}

function hasCosts(line: Line, client: string): void {
  hasNumbers(line.perJob as Line, [...COSTS, client], 0)
}

test('every line says under which conditions it was measured, durable commits among them', () => {
  for (const { conditions } of lines) {
    const { postgres, fsync, synchronousCommit, durable, cores, node } = conditions as Line
    assert.match(String(postgres), /^1\d/)
    assert.deepEqual([fsync, synchronousCommit, durable], ['on', 'on', true])
    assert.ok(Number(cores) > 0 && node === process.version)
  }
})

test('enqueue: its rate beside the bound, and what a job costs', () => {
  const [line] = of('enqueue')
  hasNumbers(line!, ['jobs', 'jobsPerSecond', 'boundJobsPerSecond', 'ratioToBound'])
  hasCosts(line!, 'producerCpuUs')
  // One row for each job, and a statement for a thousand.
  assert.equal((line!.perJob as Line).rowsInserted, 1)
  assert.ok(((line!.perJob as Line).roundTrips as number) < 0.02)
  assert.equal((line!.boundPerJob as Line).rowsInserted, 1)
})

test('singles: one caller and 64, with latencies', () => {
  assert.deepEqual(
    of('singles').map(({ callers }) => callers),
    [1, 64],
  )
  for (const line of of('singles')) {
    hasNumbers(line, ['jobs', 'jobsPerSecond', ...PERCENTILES])
    hasCosts(line, 'producerCpuUs')
  }
})

test('drain: default, tuned and other records beside the bound', () => {
  const beside = of('drain').filter((line) => line.snapshot === undefined)
  assert.deepEqual(
    beside.map(({ processes, recordsKept }) => [processes, recordsKept]),
    [
      [1, 'all'],
      [2, 'all'],
      [1, 'failures'],
      [1, 'none'],
    ],
  )
  for (const line of beside) {
    hasNumbers(line, ['jobs', 'jobsPerSecond', 'boundJobsPerSecond', 'ratioToBound'])
    hasCosts(line, 'workerCpuUs')
    assert.equal((line.boundPerJob as Line).rowsDeleted, 1)
    // From ready it is deleted, and a record is written where one is kept; leases are shared.
    const rows = (line.perJob as Line).rowWrites as number
    const least = line.recordsKept === 'all' ? 2 : 1
    assert.ok(rows >= least && rows < least + 0.5, `${rows} rows for a job`)
  }
})

test('drain under a snapshot: the last line has the ratios', () => {
  const [unheld, held] = of('drain').filter((line) => line.snapshot !== undefined)
  assert.deepEqual([unheld!.snapshot, held!.snapshot], ['none', 'held'])
  hasNumbers(held!, ['jobs', 'jobsPerSecond', 'ratioToUnheld', 'ratioLastToMiddle'])
})

test('latency: at idle with the worker apart and beside, and with two offered loads', () => {
  const all = of('latency')
  assert.deepEqual(
    all.map(({ load, offeredPerSecond }) => [load, offeredPerSecond]),
    [
      ['idle', undefined],
      ['idle', undefined],
      ['offered', 500],
      ['offered', 2_000],
    ],
  )
  for (const line of all) hasNumbers(line, ['jobs', ...PERCENTILES])
  for (const line of all.slice(2)) {
    hasNumbers(line, ['jobsPerSecond'])
    hasCosts(line, 'producerCpuUs')
    hasNumbers(line.perJob as Line, ['workerCpuUs'])
  }
})

test('backlog: three depths, each in relation to the first', () => {
  const all = of('backlog')
  assert.equal(all.length, 3)
  assert.equal(all[0]!.ratioToSmall, 1)
  for (const line of all) hasNumbers(line, ['jobs', 'waiting', 'ratioToSmall', ...PERCENTILES])
  hasNumbers(all[2]!, ['delayed', 'ended'])
})

test('mixed: all at once, and offered, with the waits of each handler', () => {
  const [atOnce, offered] = of('mixed')
  hasNumbers(atOnce!, ['jobs', 'jobsPerSecond', 'ratioToIdeal'])
  hasNumbers(offered!, ['jobs', ...PERCENTILES])
  assert.equal(Object.keys(offered!.byHandler as Line).length, 3)
})

test('flood: what the others wait, beside an empty queue, and the shares by weight', () => {
  const [line] = of('flood')
  hasNumbers(line!, ['jobs', 'victimP99Ms', 'emptyP99Ms', 'boundMs', 'weightRatio', 'floodRan', 'floodLeft'])
  assert.equal(typeof line!.holds, 'boolean')
})

test('ageing: starts between low jobs, at each overload', () => {
  const all = of('ageing')
  assert.deepEqual(
    all.map(({ overload }) => overload),
    [1, 2, 3],
  )
  for (const line of all) {
    hasNumbers(line, ['jobs', 'maxStartsBetweenLow', 'workers', 'claimMax', 'bound', 'lowStarted', 'criticalLeft'])
    assert.equal(typeof line.holds, 'boolean')
  }
})

test('recovery: without and with a backlog', () => {
  const all = of('recovery')
  assert.equal(all[0]!.backlog, 0)
  hasNumbers(all[1]!, ['backlog'])
  for (const line of all) hasNumbers(line, ['jobs', 'recoveredMs', ...PERCENTILES])
})

test('steady: begin, end and growth', () => {
  const [line] = of('steady')
  hasNumbers(line!, ['jobs', 'jobsPerSecond', ...PERCENTILES])
  for (const part of ['begin', 'end']) hasNumbers(line![part] as Line, ['hotBytes', 'walPerJobBytes'])
  hasNumbers(line!.growth as Line, ['hotRatio', 'walRatio'])
  hasCosts(line!, 'workerCpuUs')
})

test('idle: statements and CPU', () => {
  const [line] = of('idle')
  hasNumbers(line!, ['statementsPerSecond', 'workerCpuMsPerSecond'])
  hasNumbers(line!, ['serverCpuMsPerSecond'], 0)
})

test('reads: each sort, while a worker drained', () => {
  assert.equal(of('reads').length, 3)
  for (const line of of('reads')) hasNumbers(line, ['drainedJobsPerSecond', ...PERCENTILES])
})

test('memory: at each tenth of the way, and nothing is active at the end', () => {
  const [line] = of('memory')
  assert.equal((line!.rssMb as number[]).length, 11)
  hasNumbers(line!, ['jobs', 'jobsPerSecond', 'rssMaxMb'])
  assert.deepEqual(line!.activeAtEnd, {})
})

test('it cleans up: no schema, no database and no connection of it is left', async () => {
  const client = new pg.Client(serverUrl())
  await client.connect()
  after(() => client.end())
  const { rows } = await client.query(
    `select nspname as name from pg_namespace where nspname like 'bench\\_' || $1 || '\\_%'
      union all select datname from pg_database where datname = 'leasehold_bench_' || $1
      union all select application_name from pg_stat_activity where application_name = 'leasehold-bench-' || $1`,
    [String(pid)],
  )
  assert.deepEqual(rows, [])
})

test('for people it prints lines with units, below the conditions', async () => {
  const { code, stdout } = await bench('enqueue', '--jobs', '1000', '--rounds', '1')
  assert.equal(code, 0)
  assert.match(stdout, /^conditions\n {2}postgres +1\d/)
  assert.match(stdout, /^enqueue {3}1,000 jobs {3}[\d,]+ jobs\/s$/m)
  assert.match(stdout, /^ {4}wal +[\d.,]+ B$/m)
})

test('what there is not ends with code 2 and what was meant; without a scenario it says what there is', async () => {
  const unknown = await bench('drian')
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /unknown scenario "drian"; did you mean "drain"\?/)
  const option = await bench('drain', '--job', '5')
  assert.equal(option.code, 2)
  assert.match(option.stderr, /unknown option --job; did you mean --jobs\?/)
  const none = await bench()
  assert.equal(none.code, 0)
  for (const name of ['enqueue', 'backlog', 'memory']) assert.match(none.stdout, new RegExp(`^  ${name} `, 'm'))
})
