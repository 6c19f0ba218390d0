/**
 * The rules that are about no single job: whom workers took over, how processes ended, and how work came back after what
 * was done to them. In one table, as the rules of stories are. Pure; called by the checker.
 */
import { BACK_MS_MAX, type FaultSpan } from './faults.js'
import type { SceneFault, SceneRule } from './rule.js'
import type { Hold, ProcessLife, Scene, TakeOver } from './story.js'

export const SCENE_RULES: readonly SceneRule[] = [
  {
    name: 'nobody alive is taken over',
    promise: 'A worker whose beat the store has confirmed within the lease keeps its jobs.',
    breach: 'needlessTakeOvers',
    reads: 'take-overs from workers whose process lived, and their beats',
    faults: needlessTakeOvers,
    judged: (scene) => takeOversOfLiving(scene).length,
  },
  {
    name: 'whoever can beat keeps what it holds',
    promise: 'A worker that lives, and that nothing hinders, beats until it has stopped: nobody takes its jobs over.',
    breach: 'needlessTakeOvers',
    reads: 'take-overs from workers whose process lived, their failed beats, their blocks, and what was done to them',
    faults: unhinderedTakeOvers,
    judged: (scene) => takeOversOfLiving(scene).length,
  },
  {
    name: 'nobody judges right after an outage',
    promise: 'After an outage nobody is taken over before a whole lease has passed, in which everybody can beat again.',
    breach: 'needlessTakeOvers',
    reads: 'outages longer than a lease, and the take-overs after them',
    faults: hastyTakeOvers,
    judged: (scene, leaseMs) => outagesOf(scene, leaseMs).length,
  },
  {
    name: 'a process ends only as it is told',
    promise: 'No outage and no fault of a store ends a process, and none keeps it from ending.',
    breach: 'otherFaults',
    reads: 'how processes ended',
    faults: endsByThemselves,
    judged: ({ processes }) => [...processes.values()].filter(({ end }) => end !== undefined).length,
  },
  {
    name: 'throughput comes back',
    promise: 'Within 15 seconds of the end of a fault at least 80 % of the work before it is done again.',
    breach: 'otherFaults',
    reads: 'faults with their begin and end, the pace of the work, and the ends of runs',
    faults: lateReturns,
    judged: ({ disturbances }) => disturbances.returns().filter(({ is }) => is !== 'unknown').length,
  },
  {
    name: 'whoever is up consumes',
    promise: 'No process stays up without consuming, whatever was done to it or to the store.',
    breach: 'otherFaults',
    reads: 'faults with their end, how much work waited, and what the workers settled',
    faults: idleWorkers,
    judged: ({ disturbances }, leaseMs) => disturbances.lookedAt(BACK_MS_MAX + leaseMs).length,
  },
]

/** From a worker whose process lived: `sinceBeatMs` before it the store had last confirmed a beat of it. */
interface OfLiving extends TakeOver {
  sinceBeatMs: number | undefined
}

function takeOversOfLiving({ takeOvers, workers, processes, beats }: Scene): OfLiving[] {
  return takeOvers.flatMap((takeOver) => {
    const life = processes.get(workers.get(takeOver.deadWorker) ?? '')
    if (life === undefined || Math.min(life.killedAt ?? Infinity, life.goneAt ?? Infinity) <= takeOver.at) return []
    const last = beats.get(takeOver.deadWorker)?.findLast((at) => at <= takeOver.at)
    return [{ ...takeOver, sinceBeatMs: last === undefined ? undefined : takeOver.at - last }]
  })
}

function hadBeaten({ sinceBeatMs }: OfLiving, leaseMs: number): boolean {
  return sinceBeatMs !== undefined && sinceBeatMs < leaseMs
}

/** Less than a lease after a beat that it had confirmed the store has no right to give a worker up. */
function needlessTakeOvers(scene: Scene, leaseMs: number): SceneFault[] {
  return takeOversOfLiving(scene)
    .filter((one) => hadBeaten(one, leaseMs))
    .map(({ deadWorker, process, jobs, sinceBeatMs }) => ({
      weight: jobs,
      ids: [deadWorker],
      why: `${process} took ${jobs} jobs over from worker ${deadWorker}, alive ${Math.round(sinceBeatMs!)} ms before`,
    }))
}

/** It fell silent of its own will: no beat failed, no block, no fault and no outage since its last one. */
function unhinderedTakeOvers(scene: Scene, leaseMs: number): SceneFault[] {
  return takeOversOfLiving(scene)
    .filter((one) => one.sinceBeatMs !== undefined && !hadBeaten(one, leaseMs) && !isHindered(scene, leaseMs, one))
    .map(({ at, deadWorker, process, jobs, sinceBeatMs }) => ({
      weight: jobs,
      ids: [deadWorker],
      why: `${process} took ${jobs} jobs over at ${Math.round(at)} from worker ${deadWorker}, which had not beaten for ${Math.round(sinceBeatMs!)} ms though nothing hindered it`,
    }))
}

/** What hindered it is told when it is over; a block by its process, which may be a lease late. */
function isHindered(scene: Scene, leaseMs: number, { at, deadWorker, sinceBeatMs }: OfLiving): boolean {
  const process = scene.workers.get(deadWorker)!
  const from = at - sinceBeatMs!
  if ((scene.ends.get(deadWorker) ?? Number.POSITIVE_INFINITY) < at || hasLeft(scene, deadWorker, at)) return true
  const failed = scene.failedBeats.get(process)?.some((moment) => moment >= from && moment <= at + leaseMs)
  const blocked = scene.blocks.get(process)?.some((block) => block.from <= at && block.to >= from)
  const met = scene.disturbances.spans.some(
    ({ begunAt, overAt = Number.POSITIVE_INFINITY, touches, outage }) =>
      begunAt <= at && overAt >= from && (outage || touches.includes(process)),
  )
  return failed === true || blocked === true || met
}

/**
 * It was to stop and held nothing that it knew of, so it said good bye and beats no more; that was lost, and what a claim
 * without an answer took for it is found with it.
 */
function hasLeft({ draining, calls, traces }: Scene, worker: string, at: number): boolean {
  const tellsClaims = calls.some((call) => call.worker === worker)
  if ((draining.get(worker) ?? Number.POSITIVE_INFINITY) > at || !tellsClaims) return false
  const isKnown = ({ claimed, told }: Hold): boolean => claimed?.worker === worker && told.every((one) => one.at > at)
  return ![...traces.values()].some(({ holds }) => holds.some(isKnown))
}

/**
 * After an outage nobody was heard of for its whole length: for a lease from its end on, whoever would judge the others
 * has not beaten for a lease itself. Whom the outage met alive and well is not taken over then.
 */
function hastyTakeOvers(scene: Scene, leaseMs: number): SceneFault[] {
  const outages = outagesOf(scene, leaseMs)
  return takeOversOfLiving(scene).flatMap(({ at, deadWorker, process, jobs }) => {
    const outage = outages.find(({ liftingAt = Infinity }) => at > liftingAt && at < liftingAt + leaseMs)
    if (outage === undefined) return []
    const last = scene.beats.get(deadWorker)?.findLast((beat) => beat <= outage.begunAt)
    if (last === undefined || outage.begunAt - last >= leaseMs) return []
    const ms = Math.round(at - outage.liftingAt!)
    const why = `${process} took ${jobs} jobs over from worker ${deadWorker} ${ms} ms after the end of an outage`
    return [{ weight: jobs, ids: [deadWorker], why }]
  })
}

function outagesOf({ disturbances }: Scene, leaseMs: number): FaultSpan[] {
  return disturbances.spans.filter((span) => span.outage && lengthOf(span) > leaseMs)
}

function lengthOf({ begunAt, liftingAt = begunAt }: FaultSpan): number {
  return liftingAt - begunAt
}

/** Jobs taken over from workers that lived and had been silent for a lease: nobody can tell them from dead ones. */
export function stalledTakeOvers(scene: Scene, leaseMs: number): number {
  const stalled = takeOversOfLiving(scene).filter((one) => !hadBeaten(one, leaseMs))
  return stalled.reduce((sum, { jobs }) => sum + jobs, 0)
}

function lateReturns({ disturbances }: Scene): SceneFault[] {
  return disturbances
    .returns()
    .filter(({ is }) => is === 'late')
    .map(({ fault, kind, before }) => ({
      weight: 1,
      ids: [],
      why: `${BACK_MS_MAX / 1_000} s after fault ${fault} (${kind}) less than 80 % of ${Math.round(before)} jobs/s was done`,
    }))
}

/** A worker has so long to find its store again, and one that was taken over needs no more than a lease on top. */
function idleWorkers({ disturbances }: Scene, leaseMs: number): SceneFault[] {
  return disturbances.idlers(BACK_MS_MAX + leaseMs).map(({ process, span: { fault, kind } }) => ({
    weight: 1,
    ids: [process],
    why: `${process} was up after fault ${fault} (${kind}) and settled nothing, while work waited`,
  }))
}

function endsByThemselves({ processes }: Scene): SceneFault[] {
  return [...processes].flatMap(([process, life]) => {
    const why = wrongEnd(life)
    return why === undefined ? [] : [{ weight: 1, ids: [process], why: `${process} ${why}` }]
  })
}

function wrongEnd({ end, killedAt }: ProcessLife): string | undefined {
  if (end === undefined) return undefined
  const { code, signal, errors } = end
  if (signal === null && code !== 0) return `ended by itself with code ${code}: ${errors}`
  return signal === 'SIGKILL' && killedAt === undefined ? 'did not end when it was told to' : undefined
}
