/** Plays all drills side by side, in rounds, and has them judged: by the checker and each by what it is for. Called by verify.ts. */
import { realEnv } from '../../core/env.js'
import { check, type Finding, type RuleCount } from '../../testing/checker/check.js'
import type { Expectation } from '../../testing/checker/expectation.js'
import type { History } from '../../testing/checker/history.js'
import { storiesOf } from '../../testing/checker/stories.js'
import { type DrillEvidence, type DrillNotes, type DrillReport, judgeDrill } from '../../testing/verify/drill-judge.js'
import { DRILLS, type DrillJob, type DrillName, drillOf, jobsOf } from '../../testing/verify/drill-plan.js'
import { DRILL_PLAYS } from './drills.js'
import type { Stage } from './stage.js'

/** A drill and what came of it: its own promises, and the rules that the checker found broken in its jobs. */
export interface PlayedDrill extends DrillReport {
  findings: Finding[]
}

export interface Played {
  drills: PlayedDrill[]
  /** Of no job: about processes and workers. */
  findings: Finding[]
  /** How much each rule of the checker has judged. */
  rules: RuleCount[]
  rounds: number
  jobs: number
  kills: number
  seconds: number
}

export interface PlayOptions {
  /** Rounds are played until so long is over; at least one. */
  ms: number
  progress: DrillProgress
}

/** Where people are told how the drills go. */
export interface DrillProgress {
  /** What goes on now in the drill. */
  say(drill: DrillName, text: string): void
  /** The same, of what changes all the time. */
  show(drill: DrillName, text: string): void
}

export async function playDrills(stage: Stage, { ms, progress }: PlayOptions): Promise<Played> {
  const began = realEnv.monotonic()
  const jobs = new Map<DrillName, DrillJob[]>(DRILLS.map((drill) => [drill, []]))
  const notes = new Map<DrillName, DrillNotes>()
  let rounds = 0
  do {
    await playRound(stage, rounds, { jobs, notes, progress })
    rounds += 1
  } while (realEnv.monotonic() - began < ms)
  return {
    ...(await judged(stage, jobs, notes)),
    rounds,
    seconds: Math.round((realEnv.monotonic() - began) / 100) / 10,
  }
}

interface Gathered {
  jobs: Map<DrillName, DrillJob[]>
  notes: Map<DrillName, DrillNotes>
  progress: DrillProgress
}

async function playRound(stage: Stage, round: number, { jobs, notes, progress }: Gathered): Promise<void> {
  await Promise.all(
    DRILLS.map(async (drill) => {
      const planned = jobsOf(drill, round, stage.pace)
      jobs.get(drill)!.push(...planned)
      progress.say(drill, 'starting its workers')
      const crew = await stage.start(drill, round)
      const say = (text: string): void => progress.say(drill, text)
      const show = (text: string): void => progress.show(drill, text)
      const noted = await DRILL_PLAYS[drill]({ stage, jobs: planned, crew, say, show })
      notes.set(drill, merged(notes.get(drill), noted))
      await stage.stop(drill)
      progress.say(drill, 'played')
    }),
  )
}

/** Of several rounds: times add up, of the rest the worst counts. */
function merged(before: DrillNotes = {}, now: DrillNotes): DrillNotes {
  const sum = (key: 'enqueueMs' | 'workMs') => ({ [key]: (before[key] ?? 0) + (now[key] ?? 0) })
  const most = (key: 'slowestEnqueueMs' | 'mostWaiting') => ({ [key]: Math.max(before[key] ?? 0, now[key] ?? 0) })
  return {
    ...now,
    ...sum('enqueueMs'),
    ...sum('workMs'),
    ...most('slowestEnqueueMs'),
    ...most('mostWaiting'),
    ...(now.redriven === undefined ? {} : { redriven: [...(before.redriven ?? []), ...now.redriven] }),
  }
}

async function judged(
  stage: Stage,
  jobs: Gathered['jobs'],
  notes: Gathered['notes'],
): Promise<Omit<Played, 'rounds' | 'seconds'>> {
  const records = await stage.records(DRILLS)
  const byNumber = new Map(records.map((record) => [record.n, record]))
  const expected = new Map<number, Expectation>([...jobs.values()].flat().map((job) => [job.n, job.expected]))
  const history: History = {
    expect: (n) => expected.get(n),
    events: stage.events,
    records,
    leaseMs: stage.pace.leaseMs,
    retention: 'all kept',
  }
  const verdict = check(history)
  const { scene: told } = storiesOf(history)
  const evidence = (drill: DrillName): DrillEvidence => ({
    jobs: jobs.get(drill)!,
    scene: stage.scene,
    told,
    records: byNumber,
    notes: notes.get(drill) ?? {},
  })
  return {
    drills: DRILLS.map((drill) => withFindings(judgeDrill(drill, evidence(drill)), verdict.findings)),
    findings: verdict.findings.filter(({ n }) => n === undefined || drillOf(n) === undefined),
    rules: verdict.rules,
    jobs: verdict.jobs,
    kills: verdict.kills,
  }
}

function withFindings(report: DrillReport, all: readonly Finding[]): PlayedDrill {
  const findings = all.filter(({ n }) => n !== undefined && drillOf(n) === report.drill)
  return { ...report, findings, verdict: findings.length === 0 ? report.verdict : 'broken' }
}
