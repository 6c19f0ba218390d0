/**
 * The history of a recorded log: lines of JSON as `connect(url, { log })` writes them, of one process or of many. Nobody
 * knows what was planned, so only rules judge that need no plan. Called by whoever has a log of production at hand.
 */
import type { QueueEvent } from '../../observe/events.js'
import type { History, HistoryEvent, Said, Witnessed } from './history.js'
import { saidOf } from './told.js'

/** What the lines of a log do not say themselves. */
export interface LogFacts {
  /** Of the workers; 10 seconds unless given. Only read where clocks are shared. */
  leaseMs?: number
  /** `shared`: all lines were written by one machine, so their instants can be compared. */
  clocks?: 'shared' | 'apart'
  /** `everything`: what operators did (and the command line) is in it as well, not only what workers logged. */
  covers?: 'everything' | 'workers'
}

/** A history, and how much of the log it is made of. */
export interface RecordedHistory extends History {
  events: Witnessed[]
  /** Lines that told of an event, and those that did not: of other programs, or cut. */
  lines: { read: number; skipped: number }
}

/** Workers have to log at the level `debug`: quieter logs leave out claims and starts, and most rules judge nothing. */
export function historyOfEvents(lines: Iterable<string>, facts: LogFacts = {}): RecordedHistory {
  const { leaseMs = 10_000, clocks = 'apart', covers = 'workers' } = facts
  const log = new EventLog()
  const count = { read: 0, skipped: 0 }
  for (const line of lines) {
    const logged = loggedIn(line)
    if (logged === undefined) {
      if (line.trim() !== '') count.skipped += 1
      continue
    }
    count.read += 1
    log.add(logged)
  }
  return { events: log.events, lines: count, leaseMs, clocks, covers }
}

type Logged = QueueEvent & { atMs: number }
type JobEvent = Extract<Logged, { jobId: string; kind: string; queue: string }>

function loggedIn(line: string): Logged | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const { at, event, ...facts } = JSON.parse(line) as Record<string, unknown>
    if (typeof at !== 'string' || typeof event !== 'string') return undefined
    const atMs = Date.parse(at)
    return Number.isNaN(atMs) ? undefined : ({ ...facts, type: event, atMs } as unknown as Logged)
  } catch {
    // A line that was cut as its process ended, or somebody else's.
    return undefined
  }
}

/** What was done by somebody who is no worker. */
const OPERATORS = 'operators'

class EventLog {
  readonly events: Witnessed[] = []
  private readonly numbers = new Map<string, number>()
  /** Workers whose begin is in the log. Of others it may begin in the middle of a job. */
  private readonly whole = new Set<string>()
  /** By worker and job: what is known of the claim that it has. */
  private readonly held = new Map<string, { fence: number; startedAt?: number }>()

  add(event: Logged): void {
    if ('jobId' in event && event.type.startsWith('job.')) this.addOfJob(event as JobEvent)
    else if ('queue' in event) this.addOfQueue(event as Extract<Logged, { queue: string }>)
    else if ('worker' in event) this.addOfWorker(event as Extract<Logged, { worker: string }>)
  }

  private addOfJob(event: JobEvent): void {
    const { atMs: at, jobId: id, worker, attempt = 1 } = event
    if (event.type === 'job.started') {
      const held = this.heldBy(worker!, id)
      if (held === undefined && !this.whole.has(worker!)) return
      const { fence } = event
      this.held.set(`${worker} ${id}`, { fence, startedAt: at })
      this.write(worker!, { at, what: 'started', n: this.numberOf(id), id, attempt, fence })
      return
    }
    const said = saidOf(event)
    if (said === undefined) this.addOfClient(event)
    else if (said.what === 'settled') this.settled(event, said)
    else {
      if (said.what === 'claimed') this.held.set(`${worker} ${id}`, { fence: said.fence })
      this.write(worker ?? OPERATORS, { at, ...said } as HistoryEvent)
    }
  }

  private addOfClient(event: JobEvent): void {
    const { atMs: at, jobId: id } = event
    const told = { at, what: 'told' as const, n: this.numberOf(id) }
    switch (event.type) {
      case 'job.enqueued':
        this.write(OPERATORS, { ...told, outcome: 'created', id })
        return
      case 'job.duplicate':
        this.write(OPERATORS, { ...told, n: this.numberOf(event.firstId), outcome: 'duplicate', id: event.firstId })
        return
      case 'job.refused':
        this.write(OPERATORS, { ...told, outcome: event.reason === 'unknown' ? 'unknown' : 'refused' })
        return
      case 'job.cancelled':
        this.answered(event, { operation: 'cancel', answer: 'cancelled' })
        return
      case 'job.cancel requested':
        this.answered(event, { operation: 'cancel', answer: 'signalled' })
        return
      case 'job.retried':
        this.answered(event, { operation: 'retry', answer: 'ok' })
        return
      case 'job.redriven':
        this.answered(event, { operation: 'redrive', answer: 'ok' })
        return
      case 'job.discarded':
        this.answered(event, { operation: 'discard', answer: 'discarded' })
        return
      default:
    }
  }

  private answered(
    { atMs: at, jobId: id }: JobEvent,
    answer:
      | { operation: 'cancel'; answer: 'cancelled' | 'signalled' }
      | { operation: 'retry' | 'redrive'; answer: 'ok' }
      | { operation: 'discard'; answer: 'discarded' },
  ): void {
    this.write(OPERATORS, { at, what: 'answered', ask: '', id, ...answer })
  }

  private settled(event: JobEvent, said: Said & { what: 'settled' }): void {
    const { atMs: at, jobId: id, worker } = event
    const held = worker === undefined ? undefined : this.heldBy(worker, id)
    if (held === undefined && worker !== undefined && !this.whole.has(worker) && said.as !== 'dead') return
    if (held?.startedAt !== undefined) this.finished(event, worker!, held as { fence: number; startedAt: number })
    this.write(worker ?? OPERATORS, { at, ...said })
  }

  /** Of code that timed out nobody knows when it ended. */
  private finished(event: JobEvent, process: string, { fence, startedAt }: { fence: number; startedAt: number }): void {
    if (!('durationMs' in event) || event.durationMs === undefined || event.type === 'job.timed out') return
    // Instants of a log are cut to milliseconds: rounded up, this end would lie behind a start that followed it.
    const at = Math.min(event.atMs, Math.floor(startedAt + event.durationMs))
    const as = event.type === 'job.completed' ? 'returned' : event.type === 'job.snoozed' ? 'snoozed' : 'failed'
    this.write(process, { at, what: 'finished', n: this.numberOf(event.jobId), id: event.jobId, fence, as })
  }

  private addOfQueue(event: Extract<Logged, { queue: string }>): void {
    const { atMs: at, queue } = event
    const asked = { at, what: 'answered of queue' as const, ask: '', queue }
    if (event.type === 'queue.paused') this.write(OPERATORS, { ...asked, operation: 'pause' })
    else if (event.type === 'queue.resumed') this.write(OPERATORS, { ...asked, operation: 'resume' })
    else if (event.type === 'queue.draining') this.write(OPERATORS, { ...asked, operation: 'refuse' })
    else if (event.type === 'queue.purged')
      this.write(OPERATORS, { ...asked, operation: 'purge', deleted: event.deleted })
  }

  private addOfWorker(event: Extract<Logged, { worker: string }>): void {
    const { atMs: at, worker } = event
    if (event.type === 'worker.started') this.whole.add(worker)
    const said = saidOf(event)
    if (said !== undefined) this.write(worker, { at, ...said } as HistoryEvent)
  }

  private heldBy(worker: string, id: string): { fence: number; startedAt?: number } | undefined {
    return this.held.get(`${worker} ${id}`)
  }

  /** Jobs are numbered as they come; no plan knows the numbers. */
  private numberOf(id: string): number {
    const known = this.numbers.get(id)
    if (known !== undefined) return known
    this.numbers.set(id, this.numbers.size)
    return this.numbers.size - 1
  }

  private write(process: string, event: HistoryEvent): void {
    this.events.push({ process, event })
  }
}
