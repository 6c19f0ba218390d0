/**
 * Judges the drills: what each of them is played for, in sentences, and whether it was seen. What holds for every job of
 * every drill (nothing lost, nothing settled twice, …) is the checker's. Pure; called by the command.
 */
import type { ErrorRecord, JobState } from '../../core/job.js'
import type { StoreRecord } from '../checker/history.js'
import type { Scene, TakeOver } from '../checker/story.js'
import { ATTEMPTS, CREWS, type DrillJob, type DrillName, heldMax } from './drill-plan.js'
import type { DrillRun, DrillScene } from './drill-scene.js'

/** One thing that a drill is to show. `seen`: what was, in a sentence. */
export interface DrillPromise {
  promise: string
  verdict: 'kept' | 'broken'
  seen: string
}

export interface DrillReport {
  drill: DrillName
  verdict: 'kept' | 'broken'
  promises: DrillPromise[]
  /** Durations in milliseconds. */
  figures: Record<string, number>
}

/** A dead letter as the drill found it, and as it came back. */
export interface Redriven {
  n: number
  id: string
  /** Its errors when it was dead for the first time. */
  errors: ErrorRecord[]
  attempts: number
  answer: string
  /** The job that its key led to after the redrive. */
  idOfKey: string
  stateAfter: JobState | 'unknown'
}

/** What the command itself saw while it played. Absent in drills that it is not of. */
export interface DrillNotes {
  enqueueMs?: number
  slowestEnqueueMs?: number
  workMs?: number
  mostWaiting?: number
  memoryFirstMb?: number
  memoryMostMb?: number
  redriven?: Redriven[]
}

export interface DrillEvidence {
  jobs: readonly DrillJob[]
  scene: DrillScene
  /** What the logs tell, as the checker folds them. */
  told: Scene
  /** By the job's number. */
  records: ReadonlyMap<number, StoreRecord>
  notes: DrillNotes
}

/** More than that is a worker that gathers what it should leave in the store. */
const MEMORY_GROWTH_MB_MAX = 64

const JUDGES: Record<DrillName, (evidence: DrillEvidence) => Omit<DrillReport, 'drill' | 'verdict'>> = {
  kill: judgeKill,
  stall: judgeStall,
  saturate: judgeSaturate,
  poison: judgePoison,
  hopeless: judgeHopeless,
}

export function judgeDrill(drill: DrillName, evidence: DrillEvidence): DrillReport {
  const { promises, figures } = JUDGES[drill](evidence)
  const verdict = promises.every((one) => one.verdict === 'kept') ? 'kept' : 'broken'
  return { drill, verdict, promises, figures: rounded(figures) }
}

function judgeKill({ jobs, scene, told, records }: DrillEvidence): Omit<DrillReport, 'drill' | 'verdict'> {
  const cut = cutRuns(jobs, scene, told)
  const again = cut.map((run) => ({ run, next: nextRun(run, scene) }))
  const delays = again.flatMap(({ run, next }) =>
    next === undefined ? [] : [next.startedAt - told.processes.get(run.process)!.killedAt!],
  )
  const counted = again.filter(({ run, next }) => next !== undefined && next.attempt === run.attempt + 1)
  const completed = jobs.filter(({ n }) => records.get(n)?.state === 'completed')
  return {
    promises: [
      shown(
        'what a killed worker ran is taken over when its lease ends, and runs again elsewhere',
        cut.length > 0 && delays.length === cut.length,
        `${cut.length} jobs ran in the killed worker, ${delays.length} of them ran again`,
      ),
      shown(
        'an attempt that had begun counts',
        cut.length > 0 && counted.length === cut.length,
        `${counted.length} of ${cut.length} came back with the next attempt`,
      ),
      shown('nothing is lost', completed.length === jobs.length, `${completed.length} of ${jobs.length} completed`),
    ],
    figures: {
      jobs: jobs.length,
      takenOver: sumOf(takeOversOf(cut, told), (takeOver) => takeOver.jobs),
      recoveryMs: median(delays),
      slowestRecoveryMs: Math.max(0, ...delays),
    },
  }
}

/** Runs that a kill ended. */
function cutRuns(jobs: readonly DrillJob[], scene: DrillScene, { processes }: Scene): DrillRun[] {
  return jobs
    .flatMap(({ n }) => scene.runsOf(n))
    .filter((run) => processes.get(run.process)?.killedAt !== undefined && run.endedAt === undefined)
}

/** From the processes of these runs. */
function takeOversOf(runs: readonly DrillRun[], { takeOvers, workers }: Scene): TakeOver[] {
  const processes = new Set<string | undefined>(runs.map(({ process }) => process))
  return takeOvers.filter(({ deadWorker }) => processes.has(workers.get(deadWorker)))
}

function nextRun(run: DrillRun, scene: DrillScene): DrillRun | undefined {
  return scene.runsOf(run.n).find(({ startedAt, process }) => startedAt > run.startedAt && process !== run.process)
}

function judgeStall({ jobs, scene, told, records }: DrillEvidence): Omit<DrillReport, 'drill' | 'verdict'> {
  const stalled = jobs.filter(({ act }) => act === 'block').flatMap(({ n }) => scene.runsOf(n).slice(0, 1))
  const facts = stalled.map((run) => {
    const settlements = told.traces.get(run.id)?.settlements ?? []
    const here = settlements.find(({ process, at }) => process === run.process && at > run.startedAt)
    const workers = told.identities.get(run.process)?.length ?? 0
    const wakesAt = run.endedAt ?? Number.POSITIVE_INFINITY
    return {
      next: nextRun(run, scene),
      toldHere: here?.as ?? 'nothing',
      completions: settlements.filter(({ as }) => as === 'completed').length,
      again: workers > 1 && scene.runs.some((one) => one.process === run.process && one.startedAt > wakesAt),
      stalledMs: wakesAt - run.startedAt,
      state: records.get(run.n)?.state ?? 'unknown',
    }
  })
  const all = (test: (fact: (typeof facts)[number]) => boolean): boolean => facts.length > 0 && facts.every(test)
  return {
    promises: [
      shown(
        'a worker that stands still for longer than its lease loses its jobs to others',
        all(({ next }) => next !== undefined),
        `${facts.filter(({ next }) => next !== undefined).length} of ${facts.length} stalled jobs ran elsewhere meanwhile`,
      ),
      shown(
        'what it says of them when it wakes changes nothing',
        all(({ toldHere, completions, state }) => toldHere === 'lost' && completions === 1 && state === 'completed'),
        `it was answered: ${facts.map(({ toldHere }) => toldHere).join(', ')}; completions told: ${facts.map(({ completions }) => completions).join(', ')}`,
      ),
      shown(
        'it works again, under a new identity',
        all(({ again }) => again),
        `${facts.filter(({ again }) => again).length} of ${facts.length} woken workers took jobs again`,
      ),
    ],
    figures: { stalls: facts.length, stalledMs: Math.max(0, ...facts.map(({ stalledMs }) => stalledMs)) },
  }
}

function judgeSaturate({ jobs, scene, records, notes }: DrillEvidence): Omit<DrillReport, 'drill' | 'verdict'> {
  const { perWorker } = CREWS.saturate
  const processes = new Set(jobs.flatMap(({ n }) => scene.runsOf(n).map(({ process }) => process)))
  const loads = [...processes].map((process) => scene.load(process))
  const mostRunning = Math.max(0, ...loads.map((load) => load.mostRunning))
  const mostHeld = Math.max(0, ...loads.map((load) => load.mostHeld))
  const completed = jobs.filter(({ n }) => records.get(n)?.state === 'completed').length
  const { mostWaiting = 0, slowestEnqueueMs = 0, enqueueMs = 0, workMs = 0 } = notes
  const grownMb = Math.max(0, (notes.memoryMostMb ?? 0) - (notes.memoryFirstMb ?? 0))
  return {
    promises: [
      shown(
        'no worker runs more jobs at once than it has slots',
        mostRunning > 0 && mostRunning <= perWorker,
        `${mostRunning} at most, with ${perWorker} slots`,
      ),
      shown(
        'nor holds more than its slots and what starts within its prefetch window',
        mostHeld > 0 && mostHeld <= heldMax(perWorker),
        `${mostHeld} at most, of ${heldMax(perWorker)} that it may`,
      ),
      shown(
        'the rest waits in the store, which goes on taking jobs',
        completed === jobs.length && mostWaiting > 2 * heldMax(perWorker),
        `${mostWaiting} waited at the most; ${completed} of ${jobs.length} completed`,
      ),
      shown(
        "the worker's memory does not grow with the backlog",
        notes.memoryMostMb !== undefined && grownMb <= MEMORY_GROWTH_MB_MAX,
        `${Math.round(grownMb)} MB more than before the first job`,
      ),
    ],
    figures: {
      jobs: jobs.length,
      enqueuedPerSecond: perSecond(jobs.length, enqueueMs),
      workedPerSecond: perSecond(completed, workMs),
      mostWaiting,
      mostHeld,
      mostRunning,
      slowestEnqueueMs,
      memoryMb: notes.memoryMostMb ?? 0,
    },
  }
}

function judgePoison({ jobs, scene, told, records }: DrillEvidence): Omit<DrillReport, 'drill' | 'verdict'> {
  const poison = jobs.filter(({ act }) => act === 'poison')
  const neighbours = jobs.filter(({ act }) => act !== 'poison')
  const facts = poison.map(({ n }) => {
    const runs = scene.runsOf(n)
    const notes = told.traces.get(runs[0]?.id ?? '')?.crashes ?? []
    const secondAt = notes[1]?.at ?? Number.POSITIVE_INFINITY
    const after = runs.filter(({ startedAt }) => startedAt > secondAt)
    return {
      runs: runs.length,
      record: records.get(n),
      after: after.length,
      alone: after.filter((run) => scene.beside(run).length === 0).length,
      aloneNotes: notes.slice(2).filter(({ alone }) => alone).length,
      tookMs: (notes.at(-1)?.at ?? 0) - (runs[0]?.startedAt ?? 0),
    }
  })
  const all = (test: (fact: (typeof facts)[number]) => boolean): boolean => facts.length > 0 && facts.every(test)
  const completed = neighbours.filter(({ n }) => records.get(n)?.state === 'completed')
  const blamed = neighbours.filter(({ n }) => records.get(n)?.reason === 'poison')
  return {
    promises: [
      shown(
        'a job whose worker died twice runs alone from then on',
        all(({ after, alone, aloneNotes }) => after > 0 && alone === after && aloneNotes === after),
        `it started ${facts.map(({ runs, alone }) => `${runs} times, ${alone} of them alone`).join('; ')}`,
      ),
      shown(
        'two crashes alone quarantine it',
        all(({ record }) => record?.reason === 'poison' && record.crashesAlone === 2),
        `it ended as ${facts.map(({ record }) => endOf(record)).join('; ')}`,
      ),
      shown(
        'its neighbours are not blamed, and complete',
        completed.length === neighbours.length && blamed.length === 0,
        `${completed.length} of ${neighbours.length} completed, ${blamed.length} quarantined`,
      ),
    ],
    figures: {
      jobs: jobs.length,
      starts: sumOf(facts, ({ runs }) => runs),
      crashes: sumOf(facts, ({ record }) => record?.crashes ?? 0),
      crashesAlone: sumOf(facts, ({ record }) => record?.crashesAlone ?? 0),
      quarantinedAfterMs: Math.max(0, ...facts.map(({ tookMs }) => tookMs)),
    },
  }
}

function endOf(record: StoreRecord | undefined): string {
  if (record === undefined) return 'unknown to the store'
  const { state, reason, crashes, crashesAlone } = record
  return `${state}${reason === undefined ? '' : ` (${reason})`} after ${crashes} crashes, ${crashesAlone} of them alone`
}

function judgeHopeless({ jobs, scene, notes }: DrillEvidence): Omit<DrillReport, 'drill' | 'verdict'> {
  const attempts = ATTEMPTS.hopeless
  const found = notes.redriven ?? []
  const all = (test: (one: Redriven) => boolean): boolean => found.length === jobs.length && found.every(test)
  const starts = jobs.map(({ n }) => scene.runsOf(n).length)
  return {
    promises: [
      shown(
        'a job that always fails is dead after exactly its attempts',
        all((one) => one.attempts === attempts) && starts.every((count) => count === 2 * attempts),
        `dead after ${listed(found.map((one) => one.attempts))} attempts, and once more after as many when it was brought back`,
      ),
      shown(
        'each of its errors is kept',
        all(
          ({ errors }) =>
            errors.length === attempts && errors.every(({ message }, i) => message === failureText(i + 1)),
        ),
        `${listed(found.map(({ errors }) => errors.length))} errors of ${attempts} attempts`,
      ),
      shown(
        'it can be brought back, under the same id and key',
        all((one) => one.answer === 'ok' && one.idOfKey === one.id && one.stateAfter === 'dead'),
        `redriven: ${listed(found.map(({ answer }) => answer))}; its key led to the same job ${found.filter((one) => one.idOfKey === one.id).length} times of ${jobs.length}`,
      ),
    ],
    figures: { jobs: jobs.length, attempts: sumOf(starts, (count) => count) },
  }
}

/** What the handler of a hopeless job throws. */
export function failureText(attempt: number): string {
  return `attempt ${attempt} fails, as all of this job do`
}

function shown(promise: string, kept: boolean, seen: string): DrillPromise {
  return { promise, verdict: kept ? 'kept' : 'broken', seen }
}

function listed(items: readonly (string | number)[]): string {
  return items.length === 0 ? 'no' : [...new Set(items)].join(', ')
}

function perSecond(count: number, ms: number): number {
  return ms > 0 ? (count * 1_000) / ms : 0
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

function sumOf<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0)
}

function rounded(figures: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Math.round(value)]))
}
