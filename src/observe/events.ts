/**
 * The catalogue of what happens, and the bus that tells it. Logs, and later metrics, traces and alerts, are fed by
 * nothing else. Emitted by client and worker; a listener that throws harms nobody.
 */
import type { DeadReason, ErrorRecord } from '../core/job.js'

/** What every event of a job carries. Durations in milliseconds. */
export interface JobFacts {
  jobId: string
  kind: string
  queue: string
  /** The worker's id, where one is concerned. */
  worker?: string
  attempt?: number
}

/** Everything that happens to jobs, workers and queues, by `type`. See docs/reference/events.md. */
export type QueueEvent =
  // from producers and operators
  | ({ type: 'job.enqueued' } & JobFacts & { delayMs: number; priority: number })
  | ({ type: 'job.refused' } & JobFacts & { reason: string })
  | ({ type: 'job.duplicate' } & JobFacts & { firstId: string })
  | ({ type: 'job.cancelled' } & JobFacts & { durationMs?: number })
  | ({ type: 'job.cancel requested' } & JobFacts)
  | ({ type: 'job.retried' } & JobFacts & { by: 'operator' })
  | ({ type: 'job.redriven' } & JobFacts)
  | ({ type: 'job.discarded' } & JobFacts)
  // from upkeep
  | ({ type: 'job.promoted' } & JobFacts)
  | ({ type: 'job.expired' } & JobFacts)
  // from workers
  | ({ type: 'job.claimed' } & JobFacts & { fence: number; waitedMs: number })
  | ({ type: 'job.started' } & JobFacts & { fence: number; waitedMs: number })
  | ({ type: 'job.progressed' } & JobFacts & { progress: unknown })
  | ({ type: 'job.completed' } & JobFacts & { durationMs: number; waitedMs: number })
  | ({ type: 'job.failed' } & JobFacts & { durationMs: number; error: ErrorRecord; retryInMs?: number })
  | ({ type: 'job.timed out' } & JobFacts & { durationMs: number; timeoutMs: number; retryInMs?: number })
  | ({ type: 'job.snoozed' } & JobFacts & { durationMs: number; delayMs: number })
  | ({ type: 'job.given back' } & JobFacts & { note: string })
  | ({ type: 'job.crashed' } & JobFacts & { deadWorker: string; started: boolean; alone: boolean })
  | ({ type: 'job.dead' } & JobFacts & { reason: DeadReason; error?: ErrorRecord })
  | ({ type: 'job.quarantined' } & JobFacts)
  /** The lease ended before the handler did: its signal fired, its outcome was or will be refused. */
  | ({ type: 'job.lost' } & JobFacts & { fence: number; during: 'run' | 'settle' })
  | ({ type: 'job.log' } & JobFacts & { level: LogLevel; message: string; fields?: Record<string, unknown> })
  // about workers and queues
  | { type: 'worker.started'; worker: string; queues: string[]; concurrency: number }
  | { type: 'worker.draining'; worker: string; reason: string; running: number }
  | { type: 'worker.stopped'; worker: string; givenBack: number }
  | { type: 'worker.written off'; worker: string; running: number }
  | { type: 'worker.leases lost'; worker: string; jobs: number; sinceBeatMs: number }
  | { type: 'worker.loop blocked'; worker: string; blockedMs: number }
  | { type: 'worker.slot stuck'; worker: string; jobId: string; kind: string; stuck: number; concurrency: number }
  | { type: 'worker.took over'; worker: string; deadWorker: string; jobs: number }
  | { type: 'store.unavailable'; operation: string; error: ErrorRecord; retryInMs: number }
  | { type: 'store.recovered'; operation: string; afterMs: number }
  | { type: 'queue.paused' | 'queue.resumed' | 'queue.draining'; queue: string }
  | { type: 'queue.purged'; queue: string; deleted: number }

/** How important an event is, least first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
/** Gets every event. What it throws or rejects with is dropped. */
export type EventListener = (event: QueueEvent) => void

/** Where events are told. */
export class EventBus {
  private readonly listeners = new Set<EventListener>()

  /** False while nobody listens: then an emitter need not even build the event. */
  get active(): boolean {
    return this.listeners.size > 0
  }

  /** Returns the function that ends it. */
  on(listener: EventListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Tells every listener; what one throws or rejects with is dropped, as events may not change what happens to jobs. */
  emit(event: QueueEvent): void {
    for (const listener of this.listeners) {
      try {
        const answer: unknown = listener(event)
        if (answer instanceof Promise) answer.catch(() => {})
      } catch {
        // A listener's fault is the listener's own.
      }
    }
  }
}
