/**
 * Calls to the store's enqueue. Answers are values: the failure of a call becomes an outcome of each of its jobs.
 * Called by lines and batches.
 */
import { assert, QueueError } from '../core/errors.js'
import type { Connection } from '../storage/connection.js'
import type { EnqueueOutcome, NewJob, Partition } from '../storage/storage.js'
import { announce } from './announce.js'
import { NO_ANSWER, retryDelayMs, type Sent } from './outcome.js'
import { isOpen, persist } from './persist.js'

export interface Call {
  tx: unknown
  /** By the monotonic clock. */
  deadline: number
}

export class Sender {
  /** Calls of `sendWithin`; lines count their own. */
  private readonly underWay = new Set<Promise<Sent[]>>()
  private closed = false
  /** Jobs that are sent again where they are refused for now: of those refusals nobody is told. */
  readonly patient = new WeakSet<NewJob>()

  constructor(private readonly connection: Connection) {}

  /** What comes from now on is refused; resolves when what went before was answered, or is past its deadline. */
  async close(): Promise<void> {
    this.closed = true
    await Promise.all(this.underWay)
  }

  /** One try: an outcome for each job, in order. What is decided by it is announced. */
  async send(jobs: readonly NewJob[]): Promise<Sent[]> {
    const sent = await this.once(jobs, undefined)
    announce(this.connection, jobs, sent, (job, outcome) => !isOpen(job, outcome) && this.isFinal(job, outcome))
    return sent
  }

  /** As many tries as help, for what one caller sends. At the deadline, what the store has not answered is unknown. */
  async sendWithin(jobs: readonly NewJob[], call: Call): Promise<Sent[]> {
    if (this.closed) return jobs.map(() => CLOSED)
    const sending = call.tx === undefined ? this.sendByHome(jobs, call) : this.boundedSend(jobs, call)
    this.underWay.add(sending)
    try {
      return await sending
    } finally {
      this.underWay.delete(sending)
    }
  }

  /** Jobs of several stores go by a call for each, so that no store is waited for in place of another. */
  private async sendByHome(jobs: readonly NewJob[], call: Call): Promise<Sent[]> {
    const { partitions } = this.connection.storage
    if (partitions === undefined) return this.boundedSend(jobs, call)
    const parts = new Map<Partition, number[]>()
    jobs.forEach((job, index) => {
      const home = partitions.homeOf(job)
      const part = parts.get(home)
      if (part === undefined) parts.set(home, [index])
      else part.push(index)
    })
    const sent = new Array<Sent>(jobs.length)
    const sendPart = async (indexes: readonly number[]): Promise<void> => {
      const own = await this.boundedSend(
        indexes.map((index) => jobs[index]!),
        call,
      )
      indexes.forEach((index, at) => {
        sent[index] = own[at]!
      })
    }
    await Promise.all([...parts.values()].map(sendPart))
    return sent
  }

  private async boundedSend(jobs: readonly NewJob[], call: Call): Promise<Sent[]> {
    const { env } = this.connection
    let stop = (): void => {}
    // A pause before another try would hold the process open after the caller was told.
    const over = new AbortController()
    const late = new Promise<Sent[]>((resolve) => {
      const timer = env.timer(Math.max(0, call.deadline - env.monotonic()), () => {
        over.abort()
        resolve(jobs.map(() => NO_ANSWER))
      })
      stop = () => timer.cancel()
    })
    try {
      return await Promise.race([this.persisted(jobs, call, over.signal), late])
    } finally {
      stop()
    }
  }

  private async persisted(jobs: readonly NewJob[], { tx, deadline }: Call, over: AbortSignal): Promise<Sent[]> {
    const attempt = (some: readonly NewJob[]): Promise<Sent[]> => this.once(some, tx)
    const sent = await persist(this.connection.env, jobs, { attempt, deadline, tx, over })
    if (tx === undefined) announce(this.connection, jobs, sent, (job, outcome) => this.isFinal(job, outcome))
    return sent
  }

  private isFinal(job: NewJob, sent: Sent): boolean {
    return retryDelayMs(sent) === undefined || !this.patient.has(job)
  }

  private async once(jobs: readonly NewJob[], tx: unknown): Promise<Sent[]> {
    try {
      const answers = await this.connection.storage.enqueue(jobs, tx === undefined ? undefined : { tx })
      assert(answers.length === jobs.length, 'the store answers for each job')
      return answers.map((answer, index) => own(jobs[index]!, answer))
    } catch (cause) {
      return jobs.map(() => ({ status: 'failed', cause }))
    }
  }
}

/** A duplicate of itself is a job that an earlier try has stored. */
function own(job: NewJob, answer: EnqueueOutcome): Sent {
  return answer.status === 'duplicate' && answer.id === job.id ? { status: 'created' } : answer
}

export const CLOSED: Sent = Object.freeze({
  status: 'failed',
  cause: new QueueError('QUEUE_CLOSED', 'the job was not sent: the queue was closed by close()'),
})
