/**
 * Reads as a dashboard does them, while a worker drains beside them: the newest dead letters of a queue, its counts, one
 * job by its id; before millions of records.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { dead, type Queue, worker } from '../../src/index.js'
import { type Figures, hundredths, latencies, perSecond } from '../figures.js'
import { fill } from '../fill.js'
import { hold, payloadOf, QUEUE } from '../kinds.js'
import { chance } from '../open-loop.js'
import { scenario } from '../scenario.js'
import type { Place } from '../setting.js'
import { WorkerChild } from '../worker-child.js'

const PAGE = 50
/** A dashboard looks now and then; reads without a pause would be a load of their own. */
const PAUSE_MS = 20
const SEED = 1
const IDS = 1_000

type Read = { name: string; run: (queue: Queue) => Promise<unknown> }

export const reads = scenario({
  name: 'reads',
  summary: 'newest dead letters, counts, one job by id; with 3M records, while a worker drains',
  options: {
    ended: { type: 'whole', default: 3_000_000, quick: 5_000, doc: 'records of ended jobs' },
    dead: { type: 'whole', default: 50_000, quick: 100, doc: 'dead letters' },
    waiting: { type: 'whole', default: 1_500_000, quick: 60_000, doc: 'jobs that the worker drains meanwhile' },
    reads: { type: 'whole', default: 300, quick: 5, doc: 'reads of each sort' },
  },
  async *run(setting, options) {
    const place = setting.place()
    try {
      await fill(setting, place, { ready: options.waiting, ended: options.ended })
      const queue = await place.open()
      await fillDead(place, queue, options.dead)
      yield* await whileDraining(place, queue, options)
    } finally {
      await place.drop()
    }
  },
})

async function whileDraining(
  place: Place,
  queue: Queue,
  { ended, dead: letters, waiting, reads: count }: Record<'ended' | 'dead' | 'waiting' | 'reads', number>,
): Promise<Figures[]> {
  const all = readsOf(await someIds(place))
  const child = await WorkerChild.started(place)
  try {
    await child.ran(1)
    const before = await child.report()
    const began = performance.now()
    const samples = await inTurns(queue, all, count)
    const ms = performance.now() - began
    const after = await child.report()
    if (after.ran >= waiting) throw new Error('the worker was done before the reads were: give it more (--waiting)')
    await child.stop()
    return all.map(({ name }, at) => ({
      scenario: 'reads',
      read: name,
      ...latencies(samples[at]!),
      maxMs: hundredths(Math.max(...samples[at]!)),
      reads: count,
      ended,
      dead: letters,
      drainedJobsPerSecond: perSecond(after.ran - before.ran, ms),
    }))
  } finally {
    await child.kill()
  }
}

function readsOf(ids: readonly string[]): Read[] {
  const random = chance(SEED)
  return [
    {
      name: `newest ${PAGE} dead of a queue`,
      run: async (queue) => {
        const { jobs } = await queue.list({ state: 'dead', queue: QUEUE, limit: PAGE })
        if (jobs.length !== PAGE) throw new Error(`a page of ${jobs.length} dead letters`)
      },
    },
    { name: 'counts by state', run: (queue) => queue.counts(QUEUE) },
    {
      name: 'one job by id',
      run: async (queue) => {
        const job = await queue.get(ids[Math.floor(random() * ids.length)]!)
        if (job?.state !== 'completed') throw new Error(`a record is ${job?.state ?? 'not found'}`)
      },
    },
  ]
}

async function inTurns(queue: Queue, all: readonly Read[], count: number): Promise<number[][]> {
  const samples = all.map((): number[] => [])
  for (let turn = 0; turn < count; turn++)
    for (const [at, { run }] of all.entries()) {
      const began = performance.now()
      await run(queue)
      samples[at]!.push(performance.now() - began)
      await sleep(PAUSE_MS)
    }
  return samples
}

/** From all over the table. */
async function someIds(place: Place): Promise<string[]> {
  const rows = await place.sql(
    `select id from (select id, row_number() over () as n, count(*) over () as all from :s.ended) e
      where n % greatest(1, e.all / ${IDS}) = 0 limit ${IDS}`,
  )
  return rows.map(({ id }) => id as string)
}

/**
 * One job dies in a worker of its own kind; the others are copies of its row with ids and instants of their own: so a
 * dead letter is what the product makes of it, whatever its columns are.
 */
async function fillDead(place: Place, queue: Queue, count: number): Promise<void> {
  const job = await queue.enqueue(hold, payloadOf(1))
  const running = worker(queue, [hold.handle(() => dead('as in life'))], { signals: false })
  await running.start()
  await job.result().catch(() => {})
  await running.stop()
  await place.sql(
    `insert into :s.dead select (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'ended', d.ended - n * interval '1 second'))).*
      from :s.dead d, generate_series(1, $1::int - 1) n`,
    [count],
  )
  await place.sql('analyze :s.dead')
}
