/** Runs a form of chaos as its command does, and reads what it says and leaves. Called by the tests of the forms. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FormName } from '../../src/testing/chaos/forms.js'
import { SORT_NAMES } from '../../src/testing/chaos/plan.js'
import type { Verdict } from '../../src/testing/checker/check.js'
import type { StoreRecord } from '../../src/testing/checker/history.js'

const MAIN = fileURLToPath(new URL('../../chaos/main.js', import.meta.url))
/** A tenth of the full one, so that a run of half a minute comes to its end in a minute. */
export const BACKLOG = 20_000
const SECONDS = 30

export interface Ended {
  code: number
  stdout: string
  stderr: string
}

export async function chaos(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    said.stdout += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    said.stderr += String(chunk)
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, ...said }
}

export function lastLine(stdout: string): Record<string, unknown> {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as Record<string, unknown>
}

export interface FormRun {
  verdict: Verdict
  records: StoreRecord[]
  /** What the rules looked at, by their names. */
  judged: ReadonlyMap<string, number | undefined>
}

/** Half a minute of the form. Nothing may be wrong with it, and something has to have been proven. */
export async function holds(form: FormName, ...args: string[]): Promise<FormRun> {
  const dir = mkdtempSync(join(tmpdir(), `leasehold-chaos-${form}-`))
  const keep = join(dir, 'kept')
  try {
    const sizes = ['--seconds', String(SECONDS), '--backlog', String(BACKLOG)]
    const { code, stdout, stderr } = await chaos(form, ...sizes, '--keep', keep, '--json', ...args)
    assert.equal(code, 0, stderr)
    assertLine(form, lastLine(stdout), stderr)
    const verdict = assertSorts(keep, stderr)
    const lines = readFileSync(join(keep, 'store.jsonl'), 'utf8').trimEnd().split('\n')
    const records = lines.map((line) => JSON.parse(line) as StoreRecord)
    return { verdict, records, judged: new Map(verdict.rules.map(({ rule, judged }) => [rule, judged])) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** There was something of everything. */
export function assertSorts(kept: string, stderr: string): Verdict {
  const verdict = JSON.parse(readFileSync(join(kept, 'verdict.json'), 'utf8')) as Verdict
  for (const sort of [...SORT_NAMES, 'backlog'])
    assert.ok(verdict.facts.sorts[sort]! > 0, `no job of the sort ${sort}: ${stderr}`)
  const { committed, rolledBack } = verdict.facts
  assert.ok(committed > 0 && rolledBack > 0, `transactions ended both ways: ${stderr}`)
  return verdict
}

export function assertLine(form: FormName, line: Record<string, unknown>, stderr: string): void {
  const { jobs, kills, maxRecoveryMs, slowestReturnMs, faults, measured, seed, ...counts } = line
  const none = { lost: 0, settledTwice: 0, doubledEffects: 0, quarantinedInnocents: 0, needlessTakeOvers: 0 }
  assert.deepEqual(counts, { form, ...none, otherFaults: 0 }, `seed ${seed}: ${stderr}`)
  assert.equal((kills as number) > 0, form === 'kill', stderr)
  assert.equal((maxRecoveryMs as number) > 0, form === 'kill', stderr)
  assert.ok((faults as number) > 0, `nothing was done to it: ${stderr}`)
  assert.ok((slowestReturnMs as number) <= 15_000, stderr)
  // Kills may come so close upon each other that none can be told from the next one.
  if (form !== 'kill') assert.ok((measured as number) > 0, `throughput was not measured: ${stderr}`)
  assert.ok((jobs as number) > BACKLOG, stderr)
}
