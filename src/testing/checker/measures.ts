/** What a history says beside right and wrong: how soon killed work ran again. Pure; called by the checker. */
import { SUSPECT_CRASHES } from '../../core/job.js'
import { type Scene, type Story, type Trace, toldOf } from './story.js'

/** From a kill until a job that had been started there was started in another process. */
export interface Recovery {
  id: string
  n: number
  killed: string
  ms: number
  /** Two crashes or more are noted on it in all: it had to wait for its turn to run alone. */
  suspect: boolean
}

/** Of every job that a killed process had started, was not told the end of, and that ran again. */
export function recoveriesOf(stories: readonly Story[], { processes }: Scene): Recovery[] {
  return stories.flatMap(({ n, traces }) => traces.flatMap((trace) => recoveriesOfTrace(n, trace, processes)))
}

function recoveriesOfTrace(n: number, trace: Trace, processes: Scene['processes']): Recovery[] {
  const { id, runs } = trace
  const suspect = trace.records.some(({ crashes }) => crashes >= SUSPECT_CRASHES)
  return runs.flatMap((run, i) => {
    const killedAt = processes.get(run.process)?.killedAt
    const next = runs[i + 1]
    if (killedAt === undefined || next === undefined || toldOf(run) !== undefined) return []
    return [{ id, n, killed: run.process, ms: Math.round(next.startedAt - killedAt), suspect }]
  })
}
