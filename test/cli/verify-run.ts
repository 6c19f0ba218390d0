/** A whole run of `leasehold verify --quick` and what it left behind. Used by the tests of verify. */
import assert from 'node:assert/strict'
import pg from 'pg'
import type { VerifyReport } from '../../src/cli/verify/report.js'
import { parsed, start } from './command.js'

/** Schemas that the process has made, which their names tell. */
export async function schemasOf(url: string, pid: number | undefined): Promise<string[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select nspname from pg_namespace where nspname like 'leasehold_verify_%'`)
  await client.end()
  return rows.map(({ nspname }) => nspname as string).filter((name) => name.includes(`_${pid}_`))
}

/** Runs it by `reach`, looks for leavings by `url`, and has every promise kept. */
export async function verifiesWell(url: string, reach = url): Promise<VerifyReport> {
  const run = start(['verify', '--quick', '--json'], { env: { LEASEHOLD_URL: reach } })
  const { code, stdout, stderr } = await run.ended
  const report = parsed<VerifyReport>(stdout, stderr)
  assert.deepEqual(wrongOf(report), [], stderr)
  assert.deepEqual([code, report.verdict], [0, 'kept'], stderr)
  assert.deepEqual(await schemasOf(url, run.child.pid), [])
  return report
}

/** All that was not as promised, in lines. */
export function wrongOf({ promises, drills }: VerifyReport): string[] {
  const cases = promises.flatMap((group) => group.promises).flatMap((promise) => promise.cases)
  const shown = (drills?.drills ?? []).flatMap(({ drill, promises: own }) => own.map((one) => ({ drill, ...one })))
  const findings = [...(drills?.findings ?? []), ...(drills?.drills ?? []).flatMap((drill) => drill.findings)]
  return [
    ...cases.filter(({ verdict }) => verdict === 'broken').map(({ name, why }) => `${name}: ${why}`),
    ...shown
      .filter(({ verdict }) => verdict === 'broken')
      .map(({ drill, promise, seen }) => `${drill}: ${promise}: ${seen}`),
    ...findings.map(({ rule, why }) => `${rule}: ${why}`),
  ]
}
