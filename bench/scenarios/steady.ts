/**
 * Steady: an offered load for minutes. What grows: the tables that jobs pass through, dead tuples, WAL for each job, in
 * the first part and in the last. Records of ended jobs grow as they should, and are counted apart.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { walPosition } from '../cost.js'
import { type Figures, ratio, significant } from '../figures.js'
import { offeredRun, sendNoop } from '../offered-run.js'
import { figuresOfOffered } from '../open-loop.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'
import type { WorkerChild } from '../worker-child.js'

/** Parts of the run; the first lies between the first two samples, the last between the last two. */
const PARTS = 5
const SEED = 1

export const steady = scenario({
  name: 'steady',
  summary: 'an offered load for minutes: sizes, dead tuples and WAL for each job at begin and end',
  options: {
    offered: { type: 'whole', default: 2_000, quick: 200, doc: 'jobs a second in an open loop' },
    seconds: { type: 'whole', default: 300, quick: 2, doc: 'for how long' },
  },
  async *run(setting, { offered, seconds }) {
    const load = { perSecond: offered, seconds, seed: SEED }
    const { perJob, seen, ...run } = await offeredRun(setting, load, sendNoop, (place, child) =>
      watched(setting, place, child, seconds),
    )
    yield { scenario: 'steady', ...figuresOfOffered(load, run), ...growthOf(seen), perJob }
  },
})

export interface Table {
  /** With indexes and long values. */
  bytes: number
  deadTuples: number
}

export interface Sample {
  ran: number
  walBytes: number
  recordBytes: number
  /** Those that jobs pass through, by name; records of ended jobs are not among them. */
  tables: Readonly<Record<string, Table>>
}

async function watched(setting: Setting, place: Place, child: WorkerChild, seconds: number): Promise<Sample[]> {
  const samples = [await sampled(setting, place, child)]
  const began = performance.now()
  for (let part = 1; part <= PARTS; part++) {
    await sleep((part * seconds * 1_000) / PARTS - (performance.now() - began))
    samples.push(await sampled(setting, place, child))
  }
  return samples
}

/** Counts of the server may be some seconds old; sizes and WAL are of the moment. */
async function sampled(setting: Setting, place: Place, child: WorkerChild): Promise<Sample> {
  const { ran } = await child.report()
  const walBytes = await walPosition(setting)
  const rows = await setting.sql(
    `select c.relname as name, pg_total_relation_size(c.oid)::float8 as bytes, coalesce(s.n_dead_tup, 0)::float8 as dead
    from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_stat_all_tables s on s.relid = c.oid
    where n.nspname = $1 and c.relkind = 'r' order by 1`,
    [place.schema],
  )
  const all = (rows as { name: string; bytes: number; dead: number }[]).map(
    ({ name, bytes, dead }) => [name, { bytes, deadTuples: dead }] as const,
  )
  const isRecord = ([name]: readonly [string, Table]): boolean => name.startsWith('ended')
  const recordBytes = all.filter(isRecord).reduce((sum, [, { bytes }]) => sum + bytes, 0)
  return { ran, walBytes, recordBytes, tables: Object.fromEntries(all.filter((one) => !isRecord(one))) }
}

/** From the end of the first part, when everything has its usual size, to the end. */
export function growthOf(samples: readonly Sample[]): Omit<Figures, 'scenario'> {
  const first = samples[1]!
  const last = samples.at(-1)!
  const begin = partOf(samples[0]!, first)
  const end = partOf(samples.at(-2)!, last)
  return {
    begin,
    end,
    growth: {
      hotBytes: end.hotBytes - begin.hotBytes,
      hotRatio: ratio(end.hotBytes, begin.hotBytes),
      deadTuples: end.deadTuples - begin.deadTuples,
      walRatio: ratio(end.walPerJobBytes, begin.walPerJobBytes),
    },
    hottestBytes: Math.max(...samples.slice(1).map((sample) => sumOf(sample, 'bytes'))),
    tables: Object.fromEntries(Object.keys(last.tables).map((name) => [name, tableOf(name, first, last)])),
    beginIs: `after the first of ${PARTS} parts; the end is that of the last`,
  }
}

function tableOf(name: string, first: Sample, last: Sample) {
  const [from, to] = [first.tables[name], last.tables[name]!]
  return {
    beginBytes: from?.bytes ?? 0,
    endBytes: to.bytes,
    beginDeadTuples: from?.deadTuples ?? 0,
    endDeadTuples: to.deadTuples,
  }
}

function sumOf({ tables }: Sample, key: keyof Table): number {
  return Object.values(tables).reduce((sum, table) => sum + table[key], 0)
}

function partOf(from: Sample, to: Sample) {
  const jobs = to.ran - from.ran
  return {
    hotBytes: sumOf(to, 'bytes'),
    deadTuples: sumOf(to, 'deadTuples'),
    walPerJobBytes: significant((to.walBytes - from.walBytes) / jobs, 3),
    recordsPerJobBytes: significant((to.recordBytes - from.recordBytes) / jobs, 3),
  }
}
