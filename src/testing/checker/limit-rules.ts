/** Rules about limits of queues, over all their workers. In the table of rules that are about no single job. */
import type { SceneFault, SceneRule } from './rule.js'
import type { Run, Scene, Trace } from './story.js'

export const LIMIT_RULES: readonly SceneRule[] = [
  {
    name: 'a queue keeps to its limit',
    promise: 'No more jobs of a queue run at once, over all its workers, than its limit of concurrency allows.',
    breach: 'otherFaults',
    reads: 'the limits that queues have all along, and the runs that surely had their leases to the end, by one clock',
    faults: (scene) =>
      Object.entries(judgedLimits(scene)).flatMap(([queue, limit]) => over(queue, limit, spansOf(scene, queue))),
    judged: (scene) => Object.keys(judgedLimits(scene)).filter((queue) => spansOf(scene, queue).length > 0).length,
  },
]

interface Span {
  id: string
  from: number
  to: number
}

function judgedLimits({ clocks, limits }: Scene): Readonly<Record<string, number>> {
  return clocks === 'apart' ? {} : limits
}

function spansOf(scene: Scene, queue: string): Span[] {
  const spans: Span[] = []
  for (const trace of scene.traces.values())
    for (const run of trace.runs) {
      if (run.claimed?.queue !== queue) continue
      const to = heldUntil(run, trace, scene)
      if (to !== undefined) spans.push({ id: trace.id, from: run.startedAt, to })
    }
  return spans
}

/** Until its code ended or its process died. Undefined where its lease may have been over before that: it counts for nothing. */
function heldUntil(run: Run, { holds }: Trace, scene: Scene): number | undefined {
  const to = run.effectAt ?? run.finishedAt ?? scene.processes.get(run.process)?.killedAt
  if (to === undefined || run.told.some(({ as, at }) => as === 'lost' || at < to)) return undefined
  if ((scene.ends.get(run.claimed!.worker) ?? to) < to) return undefined
  const after = holds.some((hold) => hold !== run && beganAt(hold.claimed?.at ?? hold.crash?.at, run.startedAt, to))
  return after ? undefined : to
}

function beganAt(at: number | undefined, from: number, to: number): boolean {
  return at !== undefined && at >= from && at < to
}

/** At one instant ends come before starts: the next one may begin in the same turn. */
function over(queue: string, limit: number, spans: readonly Span[]): SceneFault[] {
  const ends = spans.map(({ to }) => to).sort((a, b) => a - b)
  const starts = spans.toSorted((a, b) => a.from - b.from)
  let ended = 0
  for (const [nth, { id, from }] of starts.entries()) {
    while (ended < ends.length && ends[ended]! <= from) ended += 1
    const running = nth + 1 - ended
    if (running > limit)
      return [{ weight: 1, ids: [id], why: `${running} jobs of ${queue} ran at once, and its limit is ${limit}` }]
  }
  return []
}
