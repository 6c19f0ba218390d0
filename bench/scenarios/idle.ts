/**
 * Idle: what a worker with nothing to do costs. In a database of its own, whose server counts its transactions: each
 * statement of ours is one. The CPU of the server is that of all its processes, its own upkeep included.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../src/index.js'
import { difference, serverCpu } from '../cost.js'
import { type Figures, significant } from '../figures.js'
import { scenario } from '../scenario.js'
import type { Setting } from '../setting.js'
import { WorkerChild } from '../worker-child.js'

const SCHEMA = 'leasehold'

export const idle = scenario({
  name: 'idle',
  summary: 'a worker with nothing to do: statements a second, CPU of server and worker',
  options: {
    seconds: { type: 'whole', default: 30, quick: 2, doc: 'how long it is watched' },
    settling: { type: 'whole', default: 10, quick: 1, doc: 'seconds before, in which polls grow rare' },
  },
  async *run(setting, { seconds, settling }) {
    const database = `leasehold_bench_${process.pid}`
    await setting.sql(`create database ${database}`)
    try {
      const url = new URL(setting.url)
      url.pathname = `/${database}`
      const queue = await connect(url.href, { schema: SCHEMA })
      await queue.close()
      yield await watched(setting, { url: url.href, database, seconds, settling })
    } finally {
      await setting.sql(`drop database ${database} with (force)`)
    }
  },
})

interface Watch {
  url: string
  database: string
  seconds: number
  settling: number
}

async function watched(setting: Setting, { url, database, seconds, settling }: Watch): Promise<Figures> {
  const child = await WorkerChild.spawn()
  const sample = async () => {
    const [row] = await setting.sql(
      'select (xact_commit + xact_rollback)::float8 as n from pg_stat_database where datname = $1',
      [database],
    )
    const { cpuUs } = await child.report()
    return { statements: row!.n as number, serverUs: await serverCpu(setting), workerUs: cpuUs }
  }
  try {
    await child.open({ url, schema: SCHEMA })
    await child.start()
    await sleep(settling * 1_000)
    const before = await sample()
    await sleep(seconds * 1_000)
    const after = await sample()
    await child.stop()
    const serverUs = difference(after.serverUs, before.serverUs)
    return {
      scenario: 'idle',
      jobs: 0,
      statementsPerSecond: significant((after.statements - before.statements) / seconds, 3),
      serverCpuMsPerSecond: serverUs === null ? null : significant(serverUs / 1_000 / seconds, 3),
      workerCpuMsPerSecond: significant((after.workerUs - before.workerUs) / 1_000 / seconds, 3),
      seconds,
      worker: 'default options',
    }
  } finally {
    await child.kill()
  }
}
