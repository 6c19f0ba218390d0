/** `queues list`, `pause`, `resume`, `limit`, `drain` and `purge`. */
import type { Command } from 'commander'
import { DEPTH_LIMIT_MAX } from '../../core/limits.js'
import { duration } from '../../core/options.js'
import { checked, count, orNone, startRate } from '../values.js'
import { type Action, examples } from './action.js'

export function queuesCommands(root: Command, action: Action): void {
  const queues = root.command('queues').description('look at queues; pause, resume, limit, drain and purge them')
  examples(queues.command('list'), 'queues list')
    .description('list queues with the number of jobs in each state')
    .action(action(async () => (await import('../commands/queues.js')).queuesList))
  examples(queues.command('pause'), 'queues pause mail reports')
    .description('from now on no job of these queues is claimed; running ones go on')
    .argument('<queues...>')
    .action(action(async () => (await import('../commands/queues.js')).queuesPause))
  examples(queues.command('resume'), 'queues resume mail')
    .description('end a pause (or a drain)')
    .argument('<queues...>')
    .action(action(async () => (await import('../commands/queues.js')).queuesResume))
  limitCommand(queues, action)
  examples(queues.command('drain'), 'queues drain mail --timeout 10m')
    .description('refuse new jobs, and wait until nothing of the queue waits or runs; it refuses until it is resumed')
    .argument('<queue>')
    .option('--timeout <duration>', 'how long to wait', checked('--timeout', duration()), '1h')
    .action(action(async () => (await import('../commands/queues-empty.js')).queuesDrain))
  examples(queues.command('purge'), 'queues purge mail', 'queues purge mail --yes')
    .description('delete all that waits in a queue, without a record; running jobs go on')
    .argument('<queue>')
    .option('--dry-run', 'say how many that would be, and delete nothing')
    .option('--yes', 'do not ask')
    .action(action(async () => (await import('../commands/queues-empty.js')).queuesPurge))
}

function limitCommand(queues: Command, action: Action): void {
  examples(
    queues.command('limit'),
    'queues limit mail --concurrency 20',
    'queues limit mail --rate 100/s --burst 30',
    'queues limit mail --depth 1000 --depth-per-tenant 100',
    'queues limit mail --intake 100/s --intake-burst 200',
    'queues limit mail --rate none',
    'queues limit mail --per-key 3',
    'queues limit mail',
  )
    .description(
      'limit how many jobs of a queue run at once, how often they start, how many may wait or come in, over all workers and producers; or say what holds',
    )
    .argument('<queue>')
    .option(
      '--concurrency <n>',
      'jobs in the hands of all workers at once; none: no limit',
      orNone(count('--concurrency', { min: 1, max: 1_000_000 })),
    )
    .option('--rate <n/time>', 'starts, as 100/s, 5/m or 1000/15m; none: no limit', orNone(startRate('--rate')))
    .option(
      '--burst <n>',
      'with --rate: starts that may come at once; as many as the rate says unless given',
      count('--burst', { min: 1, max: 1_000_000 }),
    )
    .option(
      '--per-key <n>',
      'jobs of each limit key that run at once; none: no limit',
      orNone(count('--per-key', { min: 1, max: 1_000_000 })),
    )
    .option(
      '--depth <n>',
      'jobs that may wait, beyond which enqueues are refused; none: no limit',
      orNone(count('--depth', { min: 1, max: DEPTH_LIMIT_MAX })),
    )
    .option(
      '--depth-per-tenant <n>',
      'of those, jobs of each tenant that may wait; none: no limit',
      orNone(count('--depth-per-tenant', { min: 1, max: DEPTH_LIMIT_MAX })),
    )
    .option(
      '--intake <n/time>',
      'jobs that come in from all producers, as 100/s; beyond it enqueues are refused; none: no limit',
      orNone(startRate('--intake')),
    )
    .option(
      '--intake-burst <n>',
      'with --intake: jobs that may come in at once; as many as the rate says unless given',
      count('--intake-burst', { min: 1, max: 1_000_000 }),
    )
    .action(action(async () => (await import('../commands/queues-limit.js')).queuesLimit))
}
