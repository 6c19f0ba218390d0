/**
 * `leasehold work MODULE`: runs the handlers of a module until it is asked to end, then drains; with `--min` or `--max`
 * in processes of their own (supervisor/). Called by the declarations in syntax/.
 */
import type { ScaleSignal } from '../../core/scaling.js'
import type { LogLevel } from '../../observe/events.js'
import type { Worker, WorkerStats } from '../../worker/index.js'
import type { Answer } from '../answer.js'
import { type EndingCause, exitCodeOf, onEnding } from '../ending.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { onParentGone } from '../parent.js'
import type { Terminal } from '../terminal.js'
import { isWatched, type OpenWorker, openWorker, queuesOf, statsLine, statsText } from '../worker-run.js'

export interface WorkChoice {
  concurrency: number
  queues?: Record<string, number>
  name?: string
  grace: string
  untilEmpty?: true
  /** A number of processes; with `untilEmpty` a duration. */
  max?: number | string
  min?: number
  scaleBy?: ScaleSignal
  target?: string
  every?: string
  coolDown?: string
  logLevel: LogLevel
  migrate: boolean
  completedRetention?: string
  deadRetention?: string
  completedMax?: number
  deadMax?: number
}

export async function work(invocation: Invocation, modulePath: string, choice: WorkChoice): Promise<Answer> {
  if (isSupervised(choice)) {
    const { supervise } = await import('../supervisor/supervise.js')
    return supervise(invocation, modulePath, choice)
  }
  const { terminal } = invocation
  const opened = await openWorker(invocation, modulePath, { choice, speaks: true })
  terminal.note(terminal.notePaint('dim', greeting(opened, choice)))
  try {
    return await untilEnded(terminal, opened.worker, choice)
  } finally {
    opened.stopLog()
  }
}

/** Options that mean something to a supervisor only, as people write them. */
const SUPERVISED = {
  min: '--min',
  scaleBy: '--scale-by',
  target: '--target',
  every: '--every',
  coolDown: '--cool-down',
} as const

/** Throws USAGE for options that do not go together. */
function isSupervised(choice: WorkChoice): boolean {
  const { max, min, untilEmpty } = choice
  const given = Object.entries(SUPERVISED).find(([name]) => choice[name as keyof WorkChoice] !== undefined)?.[1]
  if (untilEmpty) {
    if (typeof max === 'number')
      throw new CommandError('USAGE', `with --until-empty, --max is how long at most, such as 10m, and not ${max}`)
    if (given === undefined) return false
    throw new CommandError('USAGE', `${given} is for a supervisor, which has no end: leave out --until-empty`)
  }
  if (typeof max === 'string')
    throw new CommandError('USAGE', '--max is a bound for --until-empty; give both, or a number of processes (--max 8)')
  if (max === undefined && min === undefined && given !== undefined)
    throw new CommandError('USAGE', `${given} is for several processes; give --max as well, such as --max 8`)
  return max !== undefined || min !== undefined
}

function greeting({ handlers }: OpenWorker, choice: WorkChoice): string {
  const kinds = handlers.map(({ kind }) => kind).join(', ')
  return `running ${kinds} from ${queuesOf(handlers, choice).join(', ')}; SIGTERM or Ctrl-C drains, a second one ends at once`
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
  terminal.answer(statsLine(stats))
  return { exit }
}

export function tellEnding(terminal: Terminal, cause: EndingCause, before: number): void {
  if (cause === 'reader gone') return
  const told = before === 0 ? `${cause}: draining` : `${cause} again: ending at once`
  terminal.note(terminal.notePaint('yellow', told))
}
