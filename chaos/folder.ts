/**
 * What a run leaves behind, and where: enough for anybody to judge it again.
 *
 *     run.json       form, seed, sizes, conditions
 *     logs/          a file of JSON lines for each process: what it did and was told, written as it happened
 *     store.jsonl    every job of the store, read once at the end
 *     verdict.json   what the checker found
 *     store/         the PostgreSQL itself, unless --url named another one
 */
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { FormName } from '../src/testing/chaos/forms.js'
import { expected, type PlanSize } from '../src/testing/chaos/plan.js'
import { check, type Verdict } from '../src/testing/checker/check.js'
import type { StoreRecord } from '../src/testing/checker/history.js'
import { itemsIn, witnessedIn } from './logs.js'
import { Usage } from './usage.js'

/** The lease of workers with default options. */
export const LEASE_MS = 10_000

export interface RunFacts {
  form: FormName
  plan: PlanSize
  /** Of the store. */
  schema: string
  conditions: Record<string, string | number>
}

export class Folder {
  readonly store: string
  readonly logs: string
  readonly records: string
  private readonly run: string
  private readonly verdict: string

  constructor(readonly dir: string) {
    this.store = join(dir, 'store')
    this.logs = join(dir, 'logs')
    this.records = join(dir, 'store.jsonl')
    this.run = join(dir, 'run.json')
    this.verdict = join(dir, 'verdict.json')
  }

  /** With `keep` that folder, which has to be empty or new; else one in the folder for temporary files. */
  static async make(keep: string | undefined): Promise<Folder> {
    const dir = keep === undefined ? await mkdtemp(join(tmpdir(), 'leasehold-chaos-')) : resolve(keep)
    await mkdir(dir, { recursive: true })
    if ((await readdir(dir)).length > 0) throw new Usage(`--keep: ${dir} is not empty; give an empty or a new folder`)
    // Run by root, PostgreSQL runs as nobody, who has to get through; the store's own folder is closed to others.
    await chmod(dir, 0o755)
    const folder = new Folder(dir)
    await mkdir(folder.logs)
    return folder
  }

  get isThere(): boolean {
    return existsSync(this.run)
  }

  writeRun(facts: RunFacts): Promise<void> {
    return writeFile(this.run, `${JSON.stringify(facts, null, 2)}\n`)
  }

  async readRun(): Promise<RunFacts> {
    return JSON.parse(await readFile(this.run, 'utf8')) as RunFacts
  }

  /** Judges what lies here, and writes down what was found. */
  async judged({ plan }: RunFacts): Promise<Verdict> {
    const verdict = check({
      expect: (n) => expected(plan, n),
      events: witnessedIn(this.logs),
      records: itemsIn<StoreRecord>(this.records),
      leaseMs: LEASE_MS,
    })
    await writeFile(this.verdict, `${JSON.stringify(verdict, null, 2)}\n`)
    return verdict
  }
}
