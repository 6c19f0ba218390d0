/** Looks at jobs, queues and workers, and changes nothing. Called by the queue, job handles and control. */
import { knownJobId } from '../core/choices.js'
import { instant } from '../core/due.js'
import { QueueError } from '../core/errors.js'
import { withEstimate } from '../core/estimate.js'
import { explain } from '../core/explain.js'
import type { Explanation } from '../core/explanation.js'
import { JOB_STATES } from '../core/job.js'
import {
  badRelation,
  type Given,
  type Held,
  name,
  type OptionTable,
  oneOf,
  optionReader,
  text,
  whole,
} from '../core/options.js'
import type { Connection } from '../storage/connection.js'
import type { DeadGroups, Inspect, JobPage, JobView, QueueCounts, QueueView, WorkerView } from '../storage/storage.js'
import { deadReason, fingerprint } from './filters.js'
import { need } from './need.js'

const LIST_OPTIONS = {
  /** The state that the jobs are in. */
  state: { check: oneOf(['ready', 'delayed', 'retrying', 'blocked', 'running', 'completed', 'cancelled', 'dead']) },
  /** Of this queue only. */
  queue: { check: name },
  /** Of this kind only. */
  kind: { check: name },
  /** Of dead ones: for this reason only. */
  reason: { check: deadReason },
  /** Of dead ones: of this failure only, as `deadGroups` tells it; null or "none" for those without a fingerprint. */
  fingerprint: { check: fingerprint },
  /** Of those that have ended: at or after this instant. */
  endedAfter: { check: instant },
  /** Of those that have ended: before this instant. */
  endedBefore: { check: instant },
  /** Jobs in a page, 1,000 at most; 100 unless given. */
  limit: { default: 100, check: whole({ min: 1, max: 1_000 }) },
  /** The `next` of the page before. */
  after: { check: text(4_096) },
} satisfies OptionTable

/** The options of `list`; `state` has to be there. */
export type ListOptions = Given<typeof LIST_OPTIONS> & Required<Pick<Given<typeof LIST_OPTIONS>, 'state'>>

const readList = optionReader(LIST_OPTIONS)

const DEAD_GROUP_OPTIONS = {
  /** Of this queue only. */
  queue: { check: name },
  /** Of this kind only. */
  kind: { check: name },
  /** Groups at most, the newest; 100 unless given. */
  limit: { default: 100, check: whole({ min: 1, max: 1_000 }) },
} satisfies OptionTable

/** The options of `deadGroups`. */
export type DeadGroupOptions = Given<typeof DEAD_GROUP_OPTIONS>

const readDeadGroups = optionReader(DEAD_GROUP_OPTIONS)

export class Inspector {
  constructor(private readonly connection: Connection) {}

  async get(id: string): Promise<JobView | null> {
    const [view] = await this.getMany([knownJobId(id, 'id')])
    if (view === undefined)
      throw new QueueError('STORE_UNAVAILABLE', `job ${id} may be in one of the partitions that do not answer`, {
        jobId: id,
      })
    return view
  }

  /** An estimate is a second look, made where it says something; a store without a measured pace has none. */
  async explain(id: string): Promise<Explanation | null> {
    const facts = await this.facet('explaining a job').facts(knownJobId(id, 'id'))
    if (facts === null) return null
    const explanation = explain(facts)
    const { diagnose } = this.connection.storage
    if (explanation.verdict !== 'in line' || diagnose === undefined) return explanation
    return withEstimate(explanation, await diagnose.pace(explanation.queue))
  }

  async getMany(ids: readonly string[]): Promise<(JobView | null | undefined)[]> {
    return this.facet('looking at jobs').get(ids)
  }

  async list(options: ListOptions): Promise<JobPage> {
    return this.page(readList(options))
  }

  /** Every job of the state, read a page at a time. */
  async *all(options: ListOptions): AsyncGenerator<JobView, void, undefined> {
    let request = readList(options)
    for (;;) {
      const { jobs, next } = await this.page(request)
      yield* jobs
      if (next === null) return
      request = { ...request, after: next }
    }
  }

  async deadGroups(options?: DeadGroupOptions): Promise<DeadGroups> {
    const { queue, kind, limit } = readDeadGroups(options)
    return this.facet('grouping dead letters').deadGroups({
      limit,
      ...(queue === undefined ? {} : { queue }),
      ...(kind === undefined ? {} : { kind }),
    })
  }

  async counts(queue: string): Promise<QueueCounts> {
    return this.facet('counting jobs').counts(name(queue, 'queue'))
  }

  async queues(): Promise<QueueView[]> {
    return this.facet('listing queues').queues()
  }

  async workers(): Promise<WorkerView[]> {
    return this.facet('listing workers').workers()
  }

  private page({ state, limit, ...narrow }: Held<typeof LIST_OPTIONS>): Promise<JobPage> {
    if (state === undefined) throw badRelation('state', `it is needed; one of ${JOB_STATES.join(', ')}`)
    const said = Object.entries(narrow).filter(([, value]) => value !== undefined)
    for (const [option] of said) checkFits(option, state)
    return this.facet('listing jobs').list({ state, limit, ...Object.fromEntries(said) })
  }

  private facet(purpose: string): Inspect {
    return need(this.connection.storage, 'inspect', purpose)
  }
}

const OF_DEAD = ['reason', 'fingerprint']
const OF_ENDED = ['endedAfter', 'endedBefore']

/** What a filter asks for and no job of the state can have would be an empty list, taken for good news. */
function checkFits(option: string, state: string): void {
  const states = OF_DEAD.includes(option) ? ['dead'] : ['completed', 'cancelled', 'dead']
  if ((OF_DEAD.includes(option) || OF_ENDED.includes(option)) && !states.includes(state))
    throw badRelation(option, `jobs that are ${state} have none; it goes with the state ${states.join(', ')}`)
}
