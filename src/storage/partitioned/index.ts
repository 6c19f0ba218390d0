/**
 * A store over several: each job goes to one of them by rendezvous hashing, and what looks or steers asks all of them. It
 * gives no work out: a worker speaks to each store by itself, as a lease, a fence and a beat belong to one store alone.
 * Made by connect.ts of stores that it was given.
 */
import { QueueError } from '../../core/errors.js'
import { type PartitionKey, Rendezvous, routeOf } from '../../core/rendezvous.js'
import type {
  Control,
  Diagnose,
  EnqueueOptions,
  EnqueueOutcome,
  Inspect,
  NewJob,
  Partitions,
  Setup,
  Storage,
  Upkeep,
} from '../storage.js'
import { controlOf } from './control.js'
import { diagnoseOf } from './diagnose.js'
import { inspectOf } from './inspect.js'
import { isAway, type Member } from './member.js'
import { setupOf } from './setup.js'

export { isAway, Member, type MemberOptions } from './member.js'

export class PartitionedStorage implements Storage {
  readonly name = 'partitioned'
  readonly partitions: Partitions
  /** As any worker's; here only for the port. */
  readonly upkeep: Upkeep = { promote: ofOneStore, expire: ofOneStore, prune: ofOneStore }
  readonly control?: Control
  readonly inspect?: Inspect
  readonly setup?: Setup
  readonly diagnose?: Diagnose
  readonly connections?: number
  private readonly rendezvous: Rendezvous

  /** A facet is there where each of the stores has it. */
  constructor(
    private readonly members: readonly Member[],
    private readonly by: PartitionKey,
  ) {
    this.rendezvous = new Rendezvous(members.map(({ name }) => name))
    this.partitions = { all: members, homeOf: (job) => this.homeOf(job) }
    const all = (facet: keyof Storage): boolean => members.every(({ storage }) => storage[facet] !== undefined)
    if (all('control')) this.control = controlOf(members)
    if (all('inspect')) this.inspect = inspectOf(members)
    if (all('setup')) this.setup = setupOf(members)
    if (all('diagnose')) this.diagnose = diagnoseOf(members)
    if (all('connections')) this.connections = members.reduce((sum, { storage }) => sum + storage.connections!, 0)
  }

  /** Each store takes its own jobs; the failure of one is told of its jobs alone. */
  async enqueue(jobs: readonly NewJob[], options: EnqueueOptions = {}): Promise<EnqueueOutcome[]> {
    const outcomes = new Array<EnqueueOutcome>(jobs.length)
    const send = async (home: Member, indexes: readonly number[]): Promise<void> => {
      const own = indexes.map((index) => jobs[index]!)
      const answers = await enqueuedAt(home, own, options)
      indexes.forEach((index, at) => {
        outcomes[index] = answers[at]!
      })
    }
    const parts = [...this.byHome(jobs)]
    // A client inside a transaction does one thing at a time.
    if (options.tx !== undefined) for (const [home, indexes] of parts) await send(home, indexes)
    else await Promise.all(parts.map(([home, indexes]) => send(home, indexes)))
    return outcomes
  }

  claim = ofOneStore
  beat = ofOneStore
  settle = ofOneStore
  takeOver = ofOneStore
  unregister = ofOneStore

  async close(): Promise<void> {
    const closed = await Promise.allSettled(this.members.map(({ storage }) => storage.close()))
    for (const one of closed) if (one.status === 'rejected') throw one.reason
  }

  private homeOf(job: NewJob): Member {
    return this.members[this.rendezvous.choose(routeOf(job, this.by), (index) => !this.members[index]!.draining)]!
  }

  private byHome(jobs: readonly NewJob[]): Map<Member, number[]> {
    const parts = new Map<Member, number[]>()
    jobs.forEach((job, index) => {
      const home = this.homeOf(job)
      const part = parts.get(home)
      if (part === undefined) parts.set(home, [index])
      else part.push(index)
    })
    return parts
  }
}

async function enqueuedAt(home: Member, jobs: readonly NewJob[], { tx }: EnqueueOptions): Promise<EnqueueOutcome[]> {
  const failed = (cause: unknown): EnqueueOutcome[] => jobs.map(() => ({ status: 'failed', cause }))
  try {
    if (tx === undefined) return await home.change((storage) => storage.enqueue(jobs))
    if ((await home.change(async (storage) => storage.ownsTransaction?.(tx))) === false) return failed(elsewhere(home))
    return await home.change((storage) => storage.enqueue(jobs, { tx }))
  } catch (error) {
    // A fault of the call itself, such as a tx that is none, is no fault of one store.
    if (tx !== undefined && !isAway(error)) throw error
    return failed(error)
  }
}

function elsewhere({ name }: Member): QueueError {
  const message = `the job belongs to partition "${name}", and the transaction runs in another database: enqueue it without tx after the commit, or open the transaction there`
  return new QueueError('WRONG_PARTITION', message, { field: 'tx' })
}

async function ofOneStore(): Promise<never> {
  const message = 'a partitioned store hands out no work itself: workers speak to each of its stores'
  throw new QueueError('CAPABILITY_MISSING', message)
}
