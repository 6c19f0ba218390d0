/** Tells what became of enqueued jobs: a hint to workers of this process, and events. Called by the sender. */
import type { JobFacts } from '../observe/events.js'
import type { Connection } from '../storage/connection.js'
import type { NewJob } from '../storage/storage.js'
import type { Sent } from './outcome.js'

/**
 * Only for what is committed: of a job in a caller's transaction nobody knows yet whether it will ever be there.
 * `decided` leaves out events of those that are asked for again.
 */
export function announce(
  connection: Connection,
  jobs: readonly NewJob[],
  sent: readonly Sent[],
  decided: (job: NewJob, sent: Sent) => boolean = () => true,
): void {
  hint(connection, jobs, sent)
  if (!connection.events.active) return
  for (let index = 0; index < jobs.length; index++)
    if (decided(jobs[index]!, sent[index]!)) tell(connection, jobs[index]!, sent[index]!)
}

/** Once for each queue that got work which is ready now. */
function hint(connection: Connection, jobs: readonly NewJob[], sent: readonly Sent[]): void {
  const told = new Set<string>()
  for (let index = 0; index < jobs.length; index++) {
    const { queue, due } = jobs[index]!
    if (sent[index]!.status !== 'created' || told.has(queue) || delayMs(connection, due) > 0) continue
    told.add(queue)
    try {
      connection.hints.tell(queue)
    } catch {
      // A hint may be missing; what the producer is told of its job may not.
    }
  }
}

function tell({ env, events }: Connection, job: NewJob, sent: Sent): void {
  const facts: JobFacts = { jobId: job.id, kind: job.kind, queue: job.queue }
  if (sent.status === 'created')
    events.emit({ type: 'job.enqueued', ...facts, priority: job.priority, delayMs: delayMs({ env }, job.due) })
  else if (sent.status === 'duplicate') events.emit({ type: 'job.duplicate', ...facts, firstId: sent.id })
  else events.emit({ type: 'job.refused', ...facts, reason: sent.status === 'refused' ? sent.code : sent.status })
}

function delayMs({ env }: Pick<Connection, 'env'>, due: NewJob['due']): number {
  return 'delayMs' in due ? due.delayMs : Math.max(0, due.atMs - env.now())
}
