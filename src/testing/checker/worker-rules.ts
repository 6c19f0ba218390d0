/** Rules about what a worker starts: only what is surely its own, and no more than it has slots. In the tables of rules. */
import { beatsOf, lastUntil } from './beats.js'
import type { Rule, Ruling, SceneFault, SceneRule } from './rule.js'
import type { Run, Scene, Story } from './story.js'

export const WORKER_RULES: readonly Rule[] = [
  {
    name: 'nothing starts under a lease that may be over',
    promise: 'A worker starts a job only within a lease of a beat that the store has confirmed.',
    breach: 'otherFaults',
    reads: 'the starts of workers, and the beats that they had confirmed',
    judge: staleStart,
  },
]

export const WORKER_SCENE_RULES: readonly SceneRule[] = [
  {
    name: 'no worker runs more than its slots',
    promise:
      'The code of no more handlers runs at once in a worker than it has slots, whatever became of their attempts.',
    breach: 'otherFaults',
    reads: 'the slots of workers, and the starts and ends of their handlers',
    faults: (scene) => [...scene.slots].flatMap(([process, slots]) => overfull(process, slots, runsIn(scene))),
    judged: (scene) => scene.slots.size,
  },
]

/**
 * Each start is preceded by a question to the clock. One that is reported first (alone, or at most once) has the store's own
 * word instead; and a process that was stopped between question and start cannot know it.
 */
function staleStart({ expected, traces }: Story, scene: Scene): Ruling {
  if (expected?.delivery === 'at-most-once') return 'not judged'
  let judged = false
  for (const { id, runs } of traces)
    for (const run of runs) {
      const beats = beatsOf(run, scene)
      if (beats.length === 0 || run.claimed?.alone || wasDisturbed(run, scene)) continue
      judged = true
      const last = lastUntil(beats, run.startedAt)
      if (last !== undefined && run.startedAt - last < scene.leaseMs) continue
      const since = last === undefined ? 'before its first' : `${Math.round(run.startedAt - last)} ms after its last`
      return { broken: `job ${id} started in ${run.process} ${since} confirmed beat` }
    }
  return judged ? 'kept' : 'not judged'
}

function wasDisturbed({ process, startedAt }: Run, { disturbances, leaseMs }: Scene): boolean {
  return disturbances.spans.some(
    ({ touches, begunAt, overAt = Number.POSITIVE_INFINITY }) =>
      touches.includes(process) && startedAt >= begunAt && startedAt <= overAt + leaseMs,
  )
}

const known = new WeakMap<Scene, Map<string, Run[]>>()

/** Of each process, those of which it is known when their code ended. */
function runsIn(scene: Scene): Map<string, Run[]> {
  const cached = known.get(scene)
  if (cached !== undefined) return cached
  const runs = new Map<string, Run[]>()
  for (const trace of scene.traces.values())
    for (const run of trace.runs) {
      if (!scene.slots.has(run.process) || endOf(run) === undefined) continue
      const own = runs.get(run.process)
      if (own === undefined) runs.set(run.process, [run])
      else own.push(run)
    }
  known.set(scene, runs)
  return runs
}

function endOf({ effectAt, finishedAt }: Run): number | undefined {
  return effectAt ?? finishedAt
}

/** At one instant ends come before starts: the next one may begin in the same turn. */
function overfull(process: string, slots: number, runs: Map<string, Run[]>): SceneFault[] {
  const own = runs.get(process) ?? []
  const ends = own.map((run) => endOf(run)!).sort((a, b) => a - b)
  let [ended, started] = [0, 0]
  for (const startedAt of own.map((run) => run.startedAt).sort((a, b) => a - b)) {
    while (ended < ends.length && ends[ended]! <= startedAt) ended += 1
    started += 1
    if (started - ended > slots)
      return [
        {
          weight: 1,
          ids: [process],
          why: `${process} ran ${started - ended} handlers at once, and has ${slots} slots`,
        },
      ]
  }
  return []
}
