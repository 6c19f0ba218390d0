/**
 * What one look at a store tells of one job: all that decides whether it runs now, and nothing that was judged. Given
 * by the stores (`inspect.facts`), judged by explain.ts. Instants in epoch milliseconds of the store's clock.
 */
import type { DeadReason, JobHistory, JobSpec, JobState } from './job.js'
import type { QueueOrder } from './priority.js'

/** Of each list that claims read, so many entries at most are looked at. */
export const LIST_ENTRIES_MAX = 1_001
/** Workers of a queue that are looked at. */
export const WORKERS_SEEN_MAX = 1_000
/** Of the jobs that hold a permit so many are named. */
export const HOLDERS_SEEN_MAX = 10

/** One consistent look at a job and at what stands around it. */
export interface JobFacts {
  nowMs: number
  job: JobSeen
  queue: QueueSeen
  /** Those alive that serve its queue, `WORKERS_SEEN_MAX` at most. */
  workers: readonly WorkerSeen[]
  /** How many are alive and serve other queues only: they promote and take over, too. */
  workersElsewhere: number
  /** Of a running one. */
  lease: LeaseSeen | null
  /** Of a job with a key. */
  key?: KeySeen
  /** The suspect of its queue that runs: no other one of the queue starts meanwhile. */
  suspectRunning: { id: string; worker: string } | null
  /** Of a ready one, the lists that claims of its queue read; of a ready suspect that of the suspects, alone. */
  lists: readonly ListSeen[]
}

/** The job itself; what is not so in its state is null, as in a `JobView`. */
export interface JobSeen {
  id: string
  kind: string
  queue: string
  priority: number
  state: JobState
  /** It waits among the suspects. */
  suspect: boolean
  spec: JobSpec
  history: JobHistory | null
  enqueuedAt: number
  dueAt: number | null
  startedAt: number | null
  endedAt: number | null
  reason?: DeadReason
  cancelling?: boolean
}

/** What was set on the queue, and how far its limits are used up. */
export interface QueueSeen {
  paused: boolean
  draining: boolean
  order: QueueOrder
  /** Jobs in leases at once, over all workers: absent where there is no such limit. */
  concurrency?: { limit: number; held: number; holders: readonly HolderSeen[] }
  /** Starts: absent where they have no limit. `nextAt`: when there is a token, where there is none now. */
  rate?: { tokens: number; nextAt: number }
}

/** A job that holds a permit of a limit. The first ones are named, `HOLDERS_SEEN_MAX` at most. */
export interface HolderSeen {
  id: string
  worker: string
}

/** The key of a job: who holds its permits, and who goes first. */
export interface KeySeen {
  key: string
  /** It is an order key. */
  ordered: boolean
  /** Permits that it has; null: as many as are asked for. */
  limit: number | null
  held: number
  /** Ids of the first that hold one, `HOLDERS_SEEN_MAX` at most. */
  holders: readonly string[]
  /** The job itself is one of them. */
  holds: boolean
  /** Of an order key: the first of all that wait, where that is another job. */
  ahead: string | null
}

/** A living worker. */
export interface WorkerSeen {
  id: string
  name: string
  /** Absent: it did not say, and may be able to run any. */
  kinds?: readonly string[]
  concurrency: number
  /** Jobs that it holds. */
  jobs: number
}

/** Who holds the job. */
export interface LeaseSeen {
  worker: string
  claimedAt: number
  /** It was taken over from a worker that died, and is being settled. */
  adopted: boolean
  /** Null: the store knows no such worker any more. */
  holder: { name: string; lastBeatAgoMs: number; mainLagMs: number; leaseMs: number; beatMs: number } | null
}

/** A list of ready jobs. */
export interface ListSeen {
  range: 'front' | 'fair' | 'back' | 'suspects'
  /** Of all in the list; suspects of all levels are one list. */
  priority: number
  /** The first ones, in the order in which claims read the list, whatever their kinds. */
  entries: readonly EntrySeen[]
  /** Where the job itself is among them. */
  own?: number
  /** There are more. */
  cut: boolean
}

/** A job in a list. */
export interface EntrySeen {
  kind: string
  dueAt: number
  /** See `Candidate` in priority.ts. */
  dueNth?: number
}
