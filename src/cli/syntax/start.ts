/** `demo`, `dev` and `work`: what starts processes. */
import type { Command } from 'commander'
import { duration } from '../../core/options.js'
import { WORKER_OPTIONS } from '../../worker/options.js'
import {
  coolDownCheck,
  everyCheck,
  PROCESSES_MAX,
  SCALE_DEFAULTS,
  SCALE_SIGNALS,
  TARGET_DEFAULTS,
} from '../supervisor/policy.js'
import { checked, count, LOG_LEVELS, oneWord, queuesOf, type ValueParser } from '../values.js'
import { type Action, examples } from './action.js'

/** As the worker's own options allow; see worker/options.ts, which reads them again. */
const KEPT = { min: 0, max: 1_000_000 }

export function startCommands(root: Command, action: Action): void {
  examples(root.command('demo'), 'demo', 'demo --jobs 500 --seed 7')
    .description(
      'deliver 5,000 webhooks with real processes, kill a worker in mid-work, and prove that nothing was lost',
    )
    .option('--jobs <n>', 'deliveries', count('--jobs', { min: 100, max: 100_000 }), 5_000)
    .option('--seed <n>', 'chooses who fails, when and how', count('--seed', { min: 0, max: 2 ** 31 }), 1)
    .option('--keep <dir>', "keep the store and the receiver's log there, for a recount by others")
    .option('--recount <dir>', 'count again what a demo has kept there, and run nothing')
    .action(action(async () => (await import('../demo/demo.js')).demo))
  examples(root.command('dev'), 'dev', 'dev --dir ./store')
    .description('run a PostgreSQL for development, with the queue in it, until Ctrl-C')
    .option('--dir <dir>', 'where its files are', './data')
    .action(action(async () => (await import('../commands/dev.js')).dev))
  workCommand(root, action)
}

function workCommand(root: Command, action: Action): void {
  const lines = [
    'work handlers.js --concurrency 50',
    'work handlers.js --min 1 --max 8',
    'work handlers.js --max 8 --scale-by wait --target 10s',
    'work handlers.js --until-empty --max 10m',
  ]
  const command = examples(root.command('work'), ...lines)
    .description('run the handlers of a module until SIGTERM or Ctrl-C, then drain')
    .argument(
      '<module>',
      'a JavaScript module (TypeScript where Node can) that exports handlers, as kind.handle() makes them',
    )
    .option('--concurrency <n>', 'jobs at once', count('--concurrency', { min: 1, max: 10_000 }), 10)
    .option(
      '--queues <list>',
      'queues (a,b) or weights (a=3,b=1); those of the handlers unless given',
      queuesOf('--queues'),
    )
    .option(
      '--name <name>',
      'what people see of this worker; host and process id unless given',
      checked('--name', WORKER_OPTIONS.name.check),
    )
    .option(
      '--grace <duration>',
      'how long running jobs may go on after SIGTERM',
      checked('--grace', WORKER_OPTIONS.shutdownGrace.check),
      '25s',
    )
    .option('--until-empty', 'end when nothing is ready and nothing runs here')
    .option(
      '--completed-retention <duration>',
      'how long records of completed and cancelled jobs are kept; 1d unless given',
      checked('--completed-retention', WORKER_OPTIONS.completedRetention.check),
    )
    .option(
      '--dead-retention <duration>',
      'how long dead letters are kept; 30d unless given',
      checked('--dead-retention', WORKER_OPTIONS.deadRetention.check),
    )
    .option(
      '--completed-max <n>',
      'records of completed jobs that each queue keeps at most, and as many of cancelled ones: the newest',
      count('--completed-max', KEPT),
    )
    .option('--dead-max <n>', 'dead letters that each queue keeps at most: the newest', count('--dead-max', KEPT))
    .option('--log-level <level>', 'debug, info, warn or error', oneWord('--log-level', LOG_LEVELS), 'info')
    .option('--no-migrate', 'leave the schema as it is; it has to be there')
  processOptions(command).action(action(async () => (await import('../commands/work.js')).work))
}

/** Of a supervisor. */
function processOptions(command: Command): Command {
  const { by, every, coolDown } = SCALE_DEFAULTS
  return command
    .option(
      '--max <n>',
      'run it in processes, at most so many; with --until-empty a duration (10m), to end after at the latest',
      processesOrDuration('--max'),
    )
    .option(
      '--min <n>',
      'processes at least; 1 unless given. With it alone, at most as many as there are cores',
      count('--min', { min: 1, max: PROCESSES_MAX }),
    )
    .option(
      '--scale-by <signal>',
      `what asks for more processes: depth (due jobs) or wait (how long they wait); ${by} unless given`,
      oneWord('--scale-by', SCALE_SIGNALS),
    )
    .option(
      '--target <n>',
      `due jobs that may wait for each slot (depth; ${TARGET_DEFAULTS.depth} unless given), or for how long (wait; ${TARGET_DEFAULTS.wait})`,
    )
    .option('--every <duration>', `how often to look; ${every} unless given`, checked('--every', everyCheck))
    .option(
      '--cool-down <duration>',
      `how long fewer processes have to have been enough before one ends; ${coolDown} unless given`,
      checked('--cool-down', coolDownCheck),
    )
}

/** `8` processes, or `10m`: a number is no duration here, and a duration no number. */
function processesOrDuration(option: string): ValueParser<number | string> {
  const processes = count(option, { min: 1, max: PROCESSES_MAX })
  const atMost = checked(option, duration())
  return (text) => (/^\d+$/.test(text) ? processes(text) : atMost(text))
}
