/** `demo`, `dev` and `work`: what starts processes. */
import type { Command } from 'commander'
import { duration } from '../../core/options.js'
import { WORKER_OPTIONS } from '../../worker/options.js'
import { checked, count, LOG_LEVELS, oneWord, queuesOf } from '../values.js'
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
  examples(root.command('work'), 'work handlers.js --concurrency 50', 'work handlers.js --until-empty --max 10m')
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
    .option('--max <duration>', 'with --until-empty: end after this at the latest', checked('--max', duration()))
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
    .action(action(async () => (await import('../commands/work.js')).work))
}
