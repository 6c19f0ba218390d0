/**
 * What happened, as each process wrote it down at the moment it happened: the effects of handlers, and what clients were
 * told. Nothing in it was read from the store; that is looked at once, at the end, as records. Written by the processes
 * of chaos, by the simulator and by verify, and made of a recorded log by event-log.ts; read by the checker.
 *
 * Who writes what. `producer`, `operator`, `worker`, `handler` are whoever makes that call in the process (a wrapper around
 * the port sees all of it); `driver` is whoever starts and ends processes. Events marked (evidence) may be left out:
 * rules that read them then say that they have not judged.
 */
import type { DeadReason, JobState } from '../../core/job.js'
import type { QueueOrder } from '../../core/priority.js'
import type { CancelAnswer, DiscardAnswer, JobView, RedriveAnswer, RetryAnswer } from '../../storage/storage.js'
import type { Expectation } from './expectation.js'

/** How an enqueue went for its caller. `refused`: surely not stored. `unknown`: OUTCOME_UNKNOWN. */
export type ToldOutcome = 'created' | 'duplicate' | 'refused' | 'unknown'
/** `committing`: the commit was sent and not answered. A killed producer leaves `open` and `committing` behind. */
export type TransactionState = 'open' | 'committing' | 'committed' | 'rolled back'
/** What a worker was told about a job that it held: how the store settled it, or that it was not the worker's any more. */
export type Settled = 'completed' | 'dead' | 'cancelled' | 'failed' | 'timed out' | 'snoozed' | 'given back' | 'lost'
export type FinishedAs = 'failed' | 'snoozed' | 'postponed' | 'aborted' | 'returned'
/** `beaten`: a beat was confirmed, and the worker was surely alive to the store at `confirmedAt`. */
export type WorkerState = 'up' | 'beaten' | 'written off' | 'leases lost' | 'blocked' | 'draining' | 'stopped'

/** What a producer does side by side: enqueues at once, and enqueues in transactions that stay open. */
export type Stream = 'plain' | 'transactions'

/** What an operator asks for a job, and what the store answers to each. */
export type JobOperation =
  | { operation: 'cancel'; answer: CancelAnswer }
  | { operation: 'retry'; answer: RetryAnswer }
  | { operation: 'redrive'; answer: RedriveAnswer }
  | { operation: 'discard'; answer: DiscardAnswer }
/** What an operator asks for a queue. `refuse` is the begin of a drain. */
export type QueueOperation = 'pause' | 'resume' | 'refuse' | 'purge' | 'order'

/** One line of a log. `at`: milliseconds of a clock that all processes of the run share and that never goes back. */
export type HistoryEvent = { at: number } & (
  | FromProducer
  | FromOperator
  | FromHandler
  | FromWorker
  | FromDriver
  // For those who read a log while it grows; no rule reads them.
  | { what: 'alone over'; id: string }
  | { what: 'reached'; stream: Stream; n: number }
)

/** An event without its instant. */
export type Said = HistoryEvent extends infer Event ? (Event extends unknown ? Omit<Event, 'at'> : never) : never

type FromProducer =
  /** Just before an enqueue of the job is sent, by each call anew. */
  | { what: 'sending'; n: number }
  /**
   * Its answer. `id` of the job that is there (for `duplicate`: of the first one), and for `unknown` the id that it was
   * sent with, where it is known. `transaction`: it is there only if that commits.
   */
  | { what: 'told'; n: number; outcome: ToldOutcome; id?: string; code?: string; transaction?: string }
  | { what: 'transaction'; transaction: string; is: TransactionState }

/**
 * `ask` names one sending, so that its answer is known for its own. Whatever is sent is asked, once for each time it is
 * sent (a call that a fault does twice is asked twice); what is never answered may have been done or not.
 */
type FromOperator =
  | { what: 'asked'; ask: string; operation: JobOperation['operation']; id: string; force?: boolean }
  | ({ what: 'answered'; ask: string; id: string } & JobOperation)
  | { what: 'asked of queue'; ask: string; operation: QueueOperation; queue: string; order?: QueueOrder }
  /** `deleted`: so many jobs, by a purge. */
  | { what: 'answered of queue'; ask: string; operation: QueueOperation; queue: string; deleted?: number }
  /** Upkeep (or whoever promotes, expires, prunes) was told that these jobs are dead (expired). */
  | { what: 'expired'; id: string }

/** From the code of a handler itself. */
type FromHandler =
  /** Its first act. */
  | { what: 'started'; n: number; id: string; attempt: number; fence: number }
  /** Its work is done, and it is about to return. */
  | { what: 'effect'; n: number; id: string; fence: number }
  /** It ends, or is about to, without an effect. `aborted`: its signal fired. `returned`: what it did is not known. */
  | { what: 'finished'; n: number; id: string; fence: number; as: FinishedAs }

type FromWorker =
  /**
   * (evidence) A claim is sent, or sent again: the same request then. `kinds`: what the worker can run, once for each
   * identity; without it nobody knows which jobs it passes over.
   */
  | { what: 'claiming'; worker: string; request: number; kinds?: readonly string[] }
  /** (evidence) It was answered, before the jobs of its answer are written. `status` gone: the worker was written off. */
  | { what: 'claim answered'; worker: string; request: number; status: 'ok' | 'gone' }
  /**
   * (evidence) A job of the answer, in the order of the batch. `claimedAt`: the store's clock at the claim, as answered
   * (nowMs); with `waitedMs` it tells when the job was due. `request` joins it to `claiming`.
   */
  | {
      what: 'claimed'
      id: string
      worker: string
      fence: number
      queue: string
      kind?: string
      priority?: number
      attempt: number
      waitedMs?: number
      claimedAt?: number
      request?: number
      /** Handed out as a suspect, to run alone. */
      alone?: boolean
    }
  /**
   * What the worker tells of the job once the store has confirmed it. `againInMs`: the wait before it may run again, of
   * `failed` (absent for the last attempt), `timed out` and `snoozed`. `attempt`: the one that was settled.
   */
  | {
      what: 'settled'
      id: string
      worker: string
      as: Settled
      reason?: DeadReason
      againInMs?: number
      attempt?: number
    }
  /** Told by the worker that took over. */
  | { what: 'crash noted'; id: string; deadWorker: string; started: boolean; alone: boolean }
  | { what: 'took over'; worker: string; deadWorker: string; jobs: number }
  /**
   * `beaten`, with `confirmedAt`: the instant of the snapshot whose beat was confirmed. `up`, with `slots`: (evidence) how
   * many handlers may run in it at once. `kinds`: as in `claiming`.
   */
  | {
      what: 'worker'
      worker: string
      is: WorkerState
      confirmedAt?: number
      slots?: number
      ms?: number
      kinds?: readonly string[]
    }
  /** A suspect was handed out alone; it had been alone in so many crashes before. */
  | { what: 'alone'; id: string; crashesAlone: number }
  /** The process kills itself in a call to its store, as the driver asked it to. */
  | { what: 'dying'; operation: string; cut: string }
  /** A call to the store failed and is tried again. */
  | { what: 'trouble'; operation: string; message: string }

type FromDriver =
  | { what: 'spawned'; process: string; role: 'worker' | 'producer' }
  | { what: 'killed'; process: string; moment: string }
  /** Not killed, as it ran a suspect alone that had been alone in a crash before. */
  | { what: 'spared'; process: string }
  /** `errors`: the end of what it had written to stderr, where it was to end in no such way. */
  | { what: 'gone'; process: string; code: number | null; signal: string | null; errors?: string }
  | FaultEvent

/**
 * What is done to a system beside the kills, in the words of faults.ts. `begun`: once it is in place. `lifting`: just before
 * it is taken away. `over`: it is gone, and from then on work has to come back.
 */
export type FaultEvent =
  /** `touches`: the processes that it met. `outage`: while it lasts no beat of any worker reaches the store. */
  | { what: 'fault'; fault: number; is: 'begun'; kind: string; touches: readonly string[]; outage: boolean }
  | { what: 'fault'; fault: number; is: 'lifting' | 'over' }
  /** Throughput is compared only within one pace. */
  | { what: 'pace'; is: string }
  /** So many jobs are ready, about. */
  | { what: 'waiting'; jobs: number }

/** An event, and the process that wrote it. Those of one process are in their order; processes may come in any. */
export interface Witnessed {
  process: string
  event: HistoryEvent
}

/** A job as the store has it at the end. */
export interface StoreRecord {
  id: string
  /** From its payload. */
  n: number
  state: JobState
  reason?: DeadReason
  attempts: number
  crashes: number
  crashesAlone: number
  /** How often it was brought back from the dead. */
  redrives?: number
  /** For an at-most-once job that is dead (lost): the worker that died with it, as its history says. */
  lostWith?: string
}

/** Of a job whose payload has its number, as whoever looks at all jobs is shown it. */
export function recordOf({ id, state, payload, reason, history }: JobView): StoreRecord {
  const lost = history?.entries.findLast(({ outcome }) => outcome === 'lost')
  return {
    id,
    n: (payload as { n: number }).n,
    state,
    attempts: history?.attempts ?? 0,
    crashes: history?.crashes ?? 0,
    crashesAlone: history?.crashesAlone ?? 0,
    redrives: history?.redrives ?? 0,
    ...(reason === undefined ? {} : { reason }),
    ...(lost?.worker === undefined ? {} : { lostWith: lost.worker }),
  }
}

/** All that the checker reads. */
export interface History {
  /**
   * What each number is; undefined for one that nobody planned. Absent as a whole: nobody knows what was planned, as of a
   * recorded log.
   */
  expect?: (n: number) => Expectation | undefined
  /** Of every process, each one's in their order. */
  events: Iterable<Witnessed>
  /** Every job of the store, read once at the end. Absent: the store was not read. */
  records?: Iterable<StoreRecord>
  /** Of the workers. */
  leaseMs: number
  /** `shared` (if absent): `at` of all processes is by one clock. `apart`: only that of one process can be compared. */
  clocks?: 'shared' | 'apart'
  /** `workers`: what operators and producers did may not be in it. `everything` if absent. */
  covers?: 'everything' | 'workers'
  /** `pruned`: records of ended jobs may be gone by their age or number, so one that ended need not be there. */
  retention?: 'all kept' | 'pruned'
  /** Of each queue at the begin, unless it is `ageing`. */
  orders?: Readonly<Record<string, QueueOrder>>
  /** The limits of concurrency that queues have all along. */
  limits?: Readonly<Record<string, number>>
}

export function lineOf(event: HistoryEvent): string {
  return `${JSON.stringify(event)}\n`
}

/** Undefined for a line that was cut: its process was killed while it wrote, so what it says did not come to happen. */
export function eventOf(line: string): HistoryEvent | undefined {
  if (!line.endsWith('}')) return undefined
  return JSON.parse(line) as HistoryEvent
}
