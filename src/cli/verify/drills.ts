/** The drills as they are played, one function for each. What they come to is judged from the logs, later. Called by play.ts. */
import { realEnv } from '../../core/env.js'
import type { DrillNotes, Redriven } from '../../testing/verify/drill-judge.js'
import { afterStall, type DrillJob, type DrillName } from '../../testing/verify/drill-plan.js'
import type { DrillRun } from '../../testing/verify/drill-scene.js'
import { wake } from './drill-kinds.js'
import type { DrillWorker } from './drill-worker.js'
import type { Stage } from './stage.js'

export interface Drill {
  stage: Stage
  jobs: readonly DrillJob[]
  crew: readonly DrillWorker[]
  /** What goes on now, for people. */
  say: (text: string) => void
  /** The same, of what changes all the time. */
  show: (text: string) => void
}

/** Each is over when nothing of it can run any more, or when it has taken too long. */
export const DRILL_PLAYS: Record<DrillName, (drill: Drill) => Promise<DrillNotes>> = {
  kill,
  stall,
  saturate,
  poison,
  hopeless,
}

/** For what a busy machine and a slow store take beside the leases. */
const SLACK_MS = 20_000
/** Between two looks for whom to take over, and for the first one that judges to be steady. */
const TAKE_OVER_MS = 3_000
const ENQUEUE_BATCH = 50
/** Of neighbours that run when the poison comes. */
const NEIGHBOURS_RUNNING = 4

async function kill({ stage, jobs, crew, say }: Drill): Promise<DrillNotes> {
  const { leaseMs } = stage.pace
  await stage.enqueue('kill', jobs)
  say('waiting until the starts are reported')
  let victim: DrillWorker | undefined
  await stage.until(() => {
    victim = crew.find(({ name }) => reported(stage, jobs, name).length >= 2)
    return victim !== undefined
  }, SLACK_MS)
  if (victim !== undefined) stage.kill(victim)
  say('a worker was killed; waiting for the end of its lease')
  await stage.untilEmpty('kill', 2 * (leaseMs + TAKE_OVER_MS) + SLACK_MS)
  return {}
}

/** Runs of the process that a confirmed beat has told the store of. */
function reported({ scene }: Stage, jobs: readonly DrillJob[], process: string): DrillRun[] {
  const { confirmedAt } = scene.load(process)
  return jobs
    .flatMap(({ n }) => scene.runsOf(n))
    .filter((run) => run.process === process && run.endedAt === undefined && run.startedAt < confirmedAt)
}

async function stall({ stage, jobs, say }: Drill): Promise<DrillNotes> {
  const { leaseMs } = stage.pace
  const { before, after } = afterStall(jobs)
  const stalled = before.filter(({ act }) => act === 'block')
  await stage.enqueue('stall', before)
  say('a worker stands still; waiting until others have its job')
  const ranElsewhere = ({ n }: DrillJob): boolean =>
    new Set(stage.scene.runsOf(n).map(({ process }) => process)).size > 1
  await stage.until(
    // What the store has lost nobody else can have.
    async () => stalled.every(ranElsewhere) || (await stage.left('stall')).open === 0,
    2 * (leaseMs + TAKE_OVER_MS) + SLACK_MS,
  )
  for (const { n } of stalled) wake(stage.folder, n)
  await stage.until(() => stalled.every(({ n }) => stage.scene.runsOf(n)[0]?.endedAt !== undefined), SLACK_MS)
  say('it is awake; waiting for the rest')
  await stage.enqueue('stall', after)
  await stage.untilEmpty('stall', 2 * (leaseMs + TAKE_OVER_MS) + SLACK_MS)
  return {}
}

async function saturate({ stage, jobs, crew, show }: Drill): Promise<DrillNotes> {
  const memoryMb = (): number => Math.max(0, ...crew.map(({ last }) => last?.memoryMb ?? 0))
  const memoryFirstMb = memoryMb()
  const began = realEnv.monotonic()
  let slowestEnqueueMs = 0
  for (let at = 0; at < jobs.length; at += ENQUEUE_BATCH) {
    const sent = realEnv.monotonic()
    await stage.enqueue('saturate', jobs.slice(at, at + ENQUEUE_BATCH))
    slowestEnqueueMs = Math.max(slowestEnqueueMs, realEnv.monotonic() - sent)
  }
  const enqueueMs = realEnv.monotonic() - began
  let [mostWaiting, memoryMostMb] = [0, memoryFirstMb]
  await stage.untilEmpty('saturate', 10 * jobs.length + SLACK_MS, (ready) => {
    mostWaiting = Math.max(mostWaiting, ready)
    memoryMostMb = Math.max(memoryMostMb, memoryMb())
    show(`${ready} of ${jobs.length} jobs wait in the store`)
  })
  const workMs = realEnv.monotonic() - began
  return { enqueueMs, slowestEnqueueMs, workMs, mostWaiting, memoryFirstMb, memoryMostMb }
}

async function poison({ stage, jobs, show }: Drill): Promise<DrillNotes> {
  const { leaseMs } = stage.pace
  const neighbours = jobs.filter(({ act }) => act !== 'poison')
  const poisonous = jobs.filter(({ act }) => act === 'poison')
  await stage.enqueue('poison', neighbours)
  await stage.until(
    () => neighbours.filter(({ n }) => stage.scene.runsOf(n).length > 0).length >= NEIGHBOURS_RUNNING,
    SLACK_MS,
  )
  const ids = await stage.enqueue('poison', poisonous)
  // Four crashes, and before each of them somebody has to become sure that the worker is dead.
  await stage.untilEmpty('poison', 4 * 2 * (leaseMs + TAKE_OVER_MS) + SLACK_MS, () => {
    const deaths = ids.reduce((sum, id) => sum + (stage.scene.crashes.get(id) ?? 0), 0)
    show(`its worker has died ${deaths} times`)
  })
  return {}
}

async function hopeless({ stage, jobs, say }: Drill): Promise<DrillNotes> {
  const ids = await stage.enqueue('hopeless', jobs)
  say('waiting until they are dead')
  await stage.untilEmpty('hopeless', SLACK_MS)
  const first = await stage.views(ids)
  say('bringing them back')
  const answers: string[] = []
  for (const id of ids) answers.push(await stage.redrive(id))
  await stage.untilEmpty('hopeless', SLACK_MS)
  const again = await stage.enqueue('hopeless', jobs)
  await stage.untilEmpty('hopeless', SLACK_MS)
  const last = await stage.views(ids)
  const redriven = jobs.map(({ n }, i): Redriven => {
    const entries = first[i]?.history?.entries ?? []
    return {
      n,
      id: ids[i]!,
      errors: entries.flatMap(({ error }) => (error === undefined ? [] : [error])),
      attempts: first[i]?.history?.attempts ?? 0,
      answer: answers[i]!,
      idOfKey: again[i]!,
      stateAfter: last[i]?.state ?? 'unknown',
    }
  })
  return { redriven }
}
