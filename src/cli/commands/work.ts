/** `leasehold work MODULE`: runs the handlers of a module until it is asked to end, then drains. Called by the declarations in syntax/. */
import type { Queue } from '../../client/queue.js'
import type { BoundHandler } from '../../core/handler.js'
import { didYouMean } from '../../core/suggest.js'
import type { LogLevel } from '../../observe/events.js'
import { startLog } from '../../observe/log.js'
import { type Worker, type WorkerStats, worker } from '../../worker/index.js'
import type { Answer } from '../answer.js'
import { type EndingCause, exitCodeOf, onEnding } from '../ending.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import { handlersOf } from '../handlers.js'
import type { Invocation } from '../invocation.js'
import { onParentGone } from '../parent.js'
import { startPrettyLog } from '../pretty-log.js'
import { printable, safeJson } from '../printable.js'
import type { Terminal } from '../terminal.js'

export interface WorkChoice {
  concurrency: number
  queues?: Record<string, number>
  name?: string
  grace: string
  untilEmpty?: true
  max?: string
  logLevel: LogLevel
  migrate: boolean
  completedRetention?: string
  deadRetention?: string
  completedMax?: number
  deadMax?: number
}

export async function work(invocation: Invocation, modulePath: string, choice: WorkChoice): Promise<Answer> {
  if (choice.max !== undefined && !choice.untilEmpty)
    throw new CommandError('USAGE', '--max is a bound for --until-empty; give both')
  const { terminal } = invocation
  const handlers = await handlersOf(modulePath)
  const queue = await invocation.store({ migrate: choice.migrate }, 'may be made')
  await tellUnknownQueues(queue, handlers, choice, terminal)
  const running = worker(queue, handlers, {
    concurrency: choice.concurrency,
    queues: choice.queues,
    name: choice.name,
    shutdownGrace: choice.grace,
    completedRetention: choice.completedRetention,
    deadRetention: choice.deadRetention,
    completedMax: choice.completedMax,
    deadMax: choice.deadMax,
    // The second signal has an exit code of its own, so they are heard here.
    signals: false,
  })
  const stopLog = log(queue, terminal, choice.logLevel)
  terminal.note(terminal.notePaint('dim', greeting(handlers, choice)))
  try {
    return await untilEnded(terminal, running, choice)
  } finally {
    stopLog()
  }
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

function greeting(handlers: readonly BoundHandler[], { queues }: WorkChoice): string {
  const kinds = handlers.map(({ kind }) => kind).join(', ')
  const names = Object.keys(queues ?? Object.fromEntries(handlers.map(({ queue }) => [queue, 1])))
  return `running ${kinds} from ${names.join(', ')}; SIGTERM or Ctrl-C drains, a second one ends at once`
}

async function untilEnded(terminal: Terminal, running: Worker, choice: WorkChoice): Promise<Answer> {
  let exit: ExitCode = EXIT.ok
  const stopHearing = onEnding((cause, before) => {
    if (before > 0) exit = exitCodeOf(cause)
    tellEnding(terminal, cause, before)
    void running.stop(before > 0 ? { grace: 0 } : {})
  })
  const endWatch = onParentGone(() => {
    terminal.note(terminal.notePaint('yellow', 'the process that started this one is gone: draining'))
    void running.stop()
  })
  try {
    if (choice.untilEmpty) await running.runUntilEmpty(choice.max === undefined ? {} : { maxMs: choice.max })
    else await running.run()
  } finally {
    endWatch()
    stopHearing()
  }
  return ended(terminal, running.stats(), exit)
}

/** The last line, in the form of those before. */
function ended(terminal: Terminal, stats: WorkerStats, exit: ExitCode): Answer {
  if (isWatched(terminal)) return { text: () => statsText(stats), exit }
  terminal.answer(safeJson({ at: new Date().toISOString(), level: 'info', event: 'worker.stats', ...stats }))
  return { exit }
}

function isWatched({ json, width }: Terminal): boolean {
  return !json && width !== undefined
}

function tellEnding(terminal: Terminal, cause: EndingCause, before: number): void {
  if (cause === 'reader gone') return
  const told = before === 0 ? `${cause}: draining` : `${cause} again: ending at once`
  terminal.note(terminal.notePaint('yellow', told))
}

function statsText(stats: WorkerStats): string {
  return Object.entries(stats)
    .filter(([word, count]) => count > 0 || word === 'completed')
    .map(([word, count]) => `${count} ${word === 'givenBack' ? 'given back' : word}`)
    .join(', ')
}

/** For somebody who watches, lines to read; into a file or a collector, lines of JSON. */
function log(queue: Queue, terminal: Terminal, level: LogLevel): () => void {
  const { events, env } = queue.connection
  if (isWatched(terminal)) return startPrettyLog(events, { level, env, terminal })
  return startLog(events, { level, env, write: (line) => terminal.answer(printable(line.trimEnd())) })
}
