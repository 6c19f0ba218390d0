/**
 * Recovery: a worker is killed (-9) while it holds jobs; how long until all of them run again in another one. With
 * nothing else to do, and before a deep backlog.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkerOptions } from '../../src/index.js'
import { nowUs } from '../clock.js'
import { type Figures, hundredths, latencies } from '../figures.js'
import { fill } from '../fill.js'
import { hold, payloadOf, waits } from '../kinds.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'
import { WorkerChild } from '../worker-child.js'

const HELD = 10 // the slots of a worker with default options
/** The jobs that are held have numbers that no other job has. */
const HELD_FROM = 1_000_000_000
const LEASE_MS = 10_000 // the default
const RECOVERY_MS_MAX = 120_000

export const recovery = scenario({
  name: 'recovery',
  summary: 'kill -9 of a worker, alone and before a backlog of 200k: until its jobs run again',
  options: {
    backlog: { type: 'whole', default: 200_000, quick: 2_000, doc: 'jobs waiting in the second part' },
    rounds: { type: 'whole', default: 3, quick: 1, doc: 'kills of each part' },
    leaseMs: { type: 'whole', default: LEASE_MS, quick: 1_000, doc: 'lease of the workers, beats in proportion' },
  },
  async *run(setting, { backlog, rounds, leaseMs }) {
    const worker = leaseMs === LEASE_MS ? {} : { lease: leaseMs, beat: Math.ceil(leaseMs * 0.3) }
    yield await killed(setting, { backlog: 0, rounds, worker })
    yield await killed(setting, { backlog, rounds, worker })
  },
})

interface Kills {
  backlog: number
  rounds: number
  worker: WorkerOptions
}

async function killed(setting: Setting, kills: Kills): Promise<Figures> {
  const samplesMs: number[] = []
  for (let round = 0; round < kills.rounds; round++) samplesMs.push(...(await oneKill(setting, kills)))
  return {
    scenario: 'recovery',
    jobs: HELD * kills.rounds,
    ...latencies(samplesMs),
    recoveredMs: hundredths(Math.max(...samplesMs)),
    backlog: kills.backlog,
    backlogIs: 'jobs of 20 ms, which keep all slots of the other worker busy',
    kills: kills.rounds,
    worker: Object.keys(kills.worker).length === 0 ? 'default options' : { ...kills.worker },
    counted: 'from the kill to the start of each job in the other worker; recovered is the last of them',
  }
}

/** Milliseconds from the kill to the second start of each job that the worker held. */
async function oneKill(setting: Setting, { backlog, worker }: Kills): Promise<number[]> {
  const place = setting.place()
  const children: WorkerChild[] = []
  try {
    const queue = await place.open()
    const doomed = await WorkerChild.started(place, worker)
    children.push(doomed)
    await queue.enqueueMany(Array.from({ length: HELD }, (_, n) => hold.with(payloadOf(HELD_FROM + n))))
    await doomed.ran(HELD)
    const heir = await WorkerChild.spawn()
    children.push(heir)
    await heir.open(place, worker, 'at once')
    await heir.start()
    await steady(place)
    // Only now, as the other one has to be still at it when the worker is killed.
    if (backlog > 0) await fill(setting, place, { ready: backlog, kind: waits[2].kind })
    return await again(doomed, heir)
  } finally {
    await Promise.all(children.map((child) => child.kill()))
    await place.drop()
  }
}

async function again(doomed: WorkerChild, heir: WorkerChild): Promise<number[]> {
  const started = new Map<number, number>()
  let enough = (): void => {}
  const all = new Promise<void>((resolve) => {
    enough = resolve
  })
  const ignore = heir.onStart((n, atUs) => {
    if (n < HELD_FROM || started.has(n)) return
    started.set(n, atUs)
    if (started.size === HELD) enough()
  })
  const killedUs = nowUs()
  await doomed.kill()
  const late = sleep(RECOVERY_MS_MAX, 'late', { ref: false })
  if ((await Promise.race([all, late])) === 'late') throw new Error('the jobs do not run again')
  ignore()
  return [...started.values()].map((atUs) => (atUs - killedUs) / 1_000)
}

/** Who has not beaten for a lease may not judge others: killed before that, the other one would only be new. */
async function steady(place: Place): Promise<void> {
  for (;;) {
    const [row] = await place.sql('select count(*)::int as n from :s.worker where seen - steady_since >= lease_us')
    if (row!.n === 2) return
    await sleep(100)
  }
}
