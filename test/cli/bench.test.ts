/** `leasehold bench`: figures of the user's own store, and nothing left behind, however it ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { parsed, run, start } from './command.js'

interface Bench {
  results: { scenario: string; form: string; jobs: number; jobsPerSecond?: number; p50Ms?: number }[]
  conditions: Record<string, unknown>
}

const env = { LEASEHOLD_URL: serverUrl() }

/** Schemas of the process, which its name tells. */
async function schemasOf(pid: number | undefined): Promise<string[]> {
  const client = new pg.Client(serverUrl())
  await client.connect()
  const { rows } = await client.query(`select nspname from pg_namespace where nspname like 'leasehold_bench_%'`)
  await client.end()
  return rows.map(({ nspname }) => nspname as string).filter((name) => name.includes(`_${pid}_`))
}

test('every scenario hands in figures, with their conditions; no schema is left', async () => {
  const bench = start(['bench', '--jobs', '40', '--json'], { env })
  const { code, stdout, stderr } = await bench.ended
  assert.equal(code, 0, stderr)
  const { results, conditions } = parsed<Bench>(stdout)
  assert.deepEqual(
    results.map(({ scenario, form, jobs }) => [scenario, form, jobs]),
    [
      ['enqueue', 'enqueueMany', 40],
      ['singles', 'one after another', 40],
      ['singles', '64 at once', 40],
      ['drain', 'one worker', 40],
      ['latency', 'idle to start', 40],
    ],
  )
  for (const { scenario, jobsPerSecond, p50Ms } of results)
    assert.ok((jobsPerSecond ?? 1) > 0 && (p50Ms ?? 1) > 0, scenario)
  assert.deepEqual([conditions.fsync, conditions.synchronousCommit], [true, 'on'])
  assert.deepEqual(await schemasOf(bench.child.pid), [])
  const text = await run(['bench', 'enqueue', '--jobs', '50'], { env })
  assert.match(text.stdout, /^SCENARIO +FORM +JOBS +JOBS\/S.*\nenqueue +enqueueMany +50 +[\d,]+\n\npostgres \d+/)
})

test('time that is over ends a scenario, with the figures of what was done', async () => {
  const { code, stdout } = await run(['bench', 'singles', '--jobs', '10000000', '--max', '1s', '--json'], { env })
  assert.equal(code, 0)
  for (const { jobs } of parsed<Bench>(stdout).results) assert.ok(jobs > 0 && jobs < 10_000_000)
})

for (const [scenario, signal, exit] of [
  ['drain', 'SIGINT', 130],
  ['latency', 'SIGTERM', 143],
] as const)
  test(`${signal} in the middle of ${scenario}: its schema goes all the same`, async () => {
    const bench = start(['bench', scenario, '--jobs', '1000000', '--max', '5m'], { env })
    while ((await schemasOf(bench.child.pid)).length === 0 && bench.child.exitCode === null);
    bench.child.kill(signal)
    const { code, stderr } = await bench.ended
    assert.equal(code, exit, stderr)
    assert.match(stderr, /^stopped by (Ctrl-C|SIGTERM); its schemas are gone/m)
    assert.deepEqual(await schemasOf(bench.child.pid), [])
  })
