/**
 * The rule about turns of tenants. While a job is the next one of its tenant, how many of each other tenant are claimed before
 * it? A tenant's jobs stand as far apart in virtual time as their weight says (core/tenants.ts), and this one stands as far
 * behind the job of its tenant before it, or behind what was served when it came in. So of another tenant there is room for as
 * many as fit into that distance, and one. It judges what the rules of order judge (order-rules.ts), and of that
 *
 * - only claims of workers that run the same kinds: who runs a part of them comes to what stands far back;
 * - no job that may stand behind one that left without a claim: what an operator did something to, or a purge may have
 *   deleted, and what expired; nor one that was claimed in one call with a job of its tenant that was due before it;
 * - of the others, only jobs at their first claim: what comes back goes to the front, or has another turn.
 *
 * Read by the checker.
 */
import { stepsOf } from '../../core/tenants.js'
import { type Contest, contestsOf, type Entrant } from './contests.js'
import type { SceneFault, SceneRule } from './rule.js'
import type { ClaimFacts, Scene, Story } from './story.js'

/** Waits are told in milliseconds. */
const ROUNDING_MS = 1
/** Two that would stand at one place stand side by side. */
const ROUNDING_STEPS = 1

export const TENANT_RULES: readonly SceneRule[] = [
  {
    name: 'tenants take turns',
    promise:
      'While the next job of a tenant waits, each other tenant gets so many starts as its weight says, and one, whatever it has waiting.',
    breach: 'otherFaults',
    reads:
      'the plan with its tenants, and the calls of claims and what they brought, with kinds, priorities and waits, by one clock',
    faults(scene, _, stories) {
      const steps = stepsOfAll(stories)
      return waitsOf(scene, stories).flatMap((wait) => passedBy(wait, steps))
    },
    judged: (scene, _, stories) => waitsOf(scene, stories).length,
  },
]

/** A job that was the next one of its tenant while the claims from this one on took others. */
interface Wait {
  contest: Contest
  job: Entrant
  from: number
}

function waitsOf(scene: Scene, stories: readonly Story[]): Wait[] {
  const contests = contestsOf(scene, stories).filter(({ shared, queue }) => shared && !mayBePurged(queue, scene))
  if (contests.length === 0 || !runAlike(scene)) return []
  const lines = linesOf(stories)
  return contests.flatMap((contest) =>
    contest.entrants.flatMap((job) => {
      const line = lines.get(lineName(contest.queue, job.priority, job.tenant))
      const from = line && nextSince(job, contest, line)
      return from === undefined || from >= job.to ? [] : [{ contest, job, from }]
    }),
  )
}

function mayBePurged(queue: string, { queueAsks }: Scene): boolean {
  return queueAsks.some((ask) => ask.operation === 'purge' && ask.queue === queue)
}

function runAlike({ kinds, calls }: Scene): boolean {
  const [first, ...others] = [...new Set(calls.map(({ worker }) => worker))].map((worker) => kinds.get(worker))
  return others.every(
    (other) => first !== undefined && other?.size === first.size && [...other].every((kind) => first.has(kind)),
  )
}

/** What is known of the jobs that one tenant has in a level of a queue. */
interface Line {
  /** One of them may have left without a claim. */
  isUnsure: boolean
  claims: ClaimFacts[]
}

function lineName(queue: string, priority: number, tenant: string | undefined): string {
  return JSON.stringify([queue, priority, tenant])
}

function linesOf(stories: readonly Story[]): Map<string, Line> {
  const lines = new Map<string, Line>()
  for (const { expected, traces, sendings } of stories) {
    if (expected?.tenant === undefined || expected.queue === undefined || expected.priority === undefined) continue
    const name = lineName(expected.queue, expected.priority, expected.tenant)
    const line = lines.get(name) ?? { isUnsure: false, claims: [] }
    lines.set(name, line)
    // What was sent, and is not known, may have been there.
    if (traces.length === 0 && sendings > 0) line.isUnsure = true
    for (const { asks, holds } of traces) {
      const claims = holds.flatMap(({ claimed }) => claimed ?? [])
      if (asks.length > 0 || claims.length === 0) line.isUnsure = true
      line.claims.push(...claims)
    }
  }
  return lines
}

/** The first claim that was sent once all before it in its line were taken. Undefined where that is not known. */
function nextSince({ from, dueAt, call }: Entrant, { claims }: Contest, line: Line): number | undefined {
  if (line.isUnsure) return undefined
  let since = Number.NEGATIVE_INFINITY
  let own = 0
  for (const claim of line.claims) {
    if (claim.call === undefined) return undefined
    if (claim.call === call) {
      const dueBefore = (claim.claimedAt ?? 0) - (claim.waitedMs ?? 0) <= dueAt + ROUNDING_MS
      if (dueBefore && ++own > 1) return undefined
    } else if (claim.call.askedAt <= call.askedAt)
      since = Math.max(since, claim.call.answeredAt ?? Number.POSITIVE_INFINITY)
  }
  const next = claims.findIndex(({ askedAt }) => askedAt >= since)
  return next < 0 ? undefined : Math.max(from, next)
}

/** How many steps of virtual time each job takes. */
function stepsOfAll(stories: readonly Story[]): Map<string, number> {
  const ofStory = ({ expected, traces }: Story): [string, number][] =>
    traces.map(({ id }) => [id, stepsOf(expected?.weight)])
  return new Map(stories.flatMap(ofStory))
}

function passedBy({ contest, job, from }: Wait, stepsOfJob: ReadonlyMap<string, number>): SceneFault[] {
  const room = stepsOfJob.get(job.id)! + ROUNDING_STEPS
  const taken = new Map<string, { count: number; steps: number }>()
  for (let i = from; i < job.to; i++)
    for (const { id, tenant, priority } of contest.claims[i]!.taken) {
      if (tenant === undefined || tenant === job.tenant || priority !== job.priority) continue
      const known = taken.get(tenant) ?? { count: 0, steps: 0 }
      taken.set(tenant, known)
      // The first one may stand where the distance begins.
      if (known.count > 0) known.steps += stepsOfJob.get(id)!
      known.count += 1
      if (known.steps > room) return [faultOf(job, { tenant, count: known.count, queue: contest.queue })]
    }
  return []
}

function faultOf({ id, tenant }: Entrant, by: { tenant: string; count: number; queue: string }): SceneFault {
  const why = `${by.count} jobs of ${by.tenant} were claimed before ${id}, the next one of ${tenant}, in queue ${by.queue}`
  return { weight: 1, ids: [id], why }
}
