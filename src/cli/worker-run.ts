/** A worker as `leasehold work` runs it: opened by its choices, its log, its last figures. Called by `work` and by the processes of a supervisor. */
import type { Queue } from '../client/queue.js'
import type { BoundHandler } from '../core/handler.js'
import { didYouMean } from '../core/suggest.js'
import type { LogLevel } from '../observe/events.js'
import { startLog } from '../observe/log.js'
import { type Worker, type WorkerStats, worker } from '../worker/index.js'
import type { WorkChoice } from './commands/work.js'
import { handlersOf } from './handlers.js'
import type { Invocation } from './invocation.js'
import { startPrettyLog } from './pretty-log.js'
import { printable, safeJson } from './printable.js'
import type { Terminal } from './terminal.js'

export interface OpenWorker {
  queue: Queue
  handlers: readonly BoundHandler[]
  worker: Worker
  stopLog: () => void
}

/** Not started yet. `speaks`: says to people what is odd about its queues. */
export async function openWorker(
  invocation: Invocation,
  modulePath: string,
  { choice, speaks }: { choice: WorkChoice; speaks: boolean },
): Promise<OpenWorker> {
  const { terminal } = invocation
  const handlers = await handlersOf(modulePath)
  const queue = await invocation.store({ migrate: choice.migrate }, 'may be made')
  if (speaks) await tellUnknownQueues(queue, handlers, choice, terminal)
  const opened = worker(queue, handlers, {
    concurrency: choice.concurrency,
    queues: choice.queues,
    name: choice.name,
    shutdownGrace: choice.grace,
    completedRetention: choice.completedRetention,
    deadRetention: choice.deadRetention,
    completedMax: choice.completedMax,
    deadMax: choice.deadMax,
    // The second signal has an exit code of its own, so the command hears them.
    signals: false,
  })
  return { queue, handlers, worker: opened, stopLog: startLogOf(queue, terminal, choice.logLevel) }
}

/** Those that it works on. */
export function queuesOf(handlers: readonly BoundHandler[], { queues }: WorkChoice): string[] {
  return Object.keys(queues ?? Object.fromEntries(handlers.map(({ queue }) => [queue, 1])))
}

/**
 * A queue that neither the store nor a handler knows may be a slip of the pen, and the worker would wait at it for ever.
 * It may also be a new one, whose jobs come later: so it is said and not refused.
 */
async function tellUnknownQueues(
  queue: Queue,
  handlers: readonly BoundHandler[],
  { queues: chosen }: WorkChoice,
  terminal: Terminal,
): Promise<void> {
  if (chosen === undefined) return
  const known = new Set([...(await queue.queues()).map((view) => view.queue), ...handlers.map((one) => one.queue)])
  for (const name of Object.keys(chosen).filter((one) => !known.has(one))) {
    const text = `queue "${name}" is new to the store, and no handler names it${didYouMean(name, known)}`
    terminal.note(terminal.notePaint('yellow', text))
  }
}

/** Somebody sits there and reads: lines for people. Into a file or a collector go lines of JSON. */
export function isWatched({ json, width }: Terminal): boolean {
  return !json && width !== undefined
}

function startLogOf(queue: Queue, terminal: Terminal, level: LogLevel): () => void {
  const { events, env } = queue.connection
  if (isWatched(terminal)) return startPrettyLog(events, { level, env, terminal })
  return startLog(events, { level, env, write: (line) => terminal.answer(printable(line.trimEnd())) })
}

/** The last line of a worker's log. */
export function statsLine(stats: WorkerStats): string {
  return safeJson({ at: new Date().toISOString(), level: 'info', event: 'worker.stats', ...stats })
}

/** `12 completed, 1 failed`. */
export function statsText(stats: WorkerStats): string {
  return Object.entries(stats)
    .filter(([word, count]) => count > 0 || word === 'completed')
    .map(([word, count]) => `${count} ${word === 'givenBack' ? 'given back' : word}`)
    .join(', ')
}
