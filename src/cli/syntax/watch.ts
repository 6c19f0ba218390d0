/** `stats`, `tail`, `workers`, `scale` and `doctor`: what is going on, and whether it is well. */
import type { Command } from 'commander'
import { duration } from '../../core/options.js'
import { ENDING_STATES } from '../commands/tail-states.js'
import { PROCESSES_MAX, SCALE_DEFAULTS, SCALE_SIGNALS, TARGET_DEFAULTS } from '../supervisor/policy.js'
import { checked, count, nameOf, oneWord, queuesOf, statesAmong } from '../values.js'
import { type Action, examples, ofQueueAndKind } from './action.js'

export function watchCommands(root: Command, action: Action): void {
  examples(root.command('stats'), 'stats', 'stats --queue mail --watch')
    .description(
      'queues at work, those that wait longest first: what waits and for how long, what runs, how much was completed, who works',
    )
    .option('--queue <name>', 'of this queue only', nameOf('--queue'))
    .option('--watch', 'again and again, until Ctrl-C')
    .option('--every <duration>', 'with --watch: how often', checked('--every', duration({ minMs: 500 })), '2s')
    .action(action(async () => (await import('../commands/stats.js')).stats))
  examples(ofQueueAndKind(root.command('tail')), 'tail', 'tail --state dead --since 1h', 'tail --kind charge --json')
    .description('jobs as they end, one line each, until Ctrl-C')
    .option(
      '--state <states>',
      `one or more of ${ENDING_STATES.join(', ')}, with commas; all unless given`,
      statesAmong('--state', ENDING_STATES),
    )
    .option('--since <duration>', 'begin with those of so long ago', checked('--since', duration()), '1m')
    .option('--no-follow', 'end with the newest one there is')
    .action(action(async () => (await import('../commands/tail.js')).tail))
  examples(root.command('workers'), 'workers', 'workers --json')
    .description('list the workers that are alive, on any machine')
    .action(action(async () => (await import('../commands/workers.js')).workers))
  examples(root.command('partitions'), 'partitions', 'partitions --json')
    .description('the stores of a queue over several: which of them answer, and what each has to do')
    .action(action(async () => (await import('../commands/partitions.js')).partitions))
  scaleCommand(root, action)
  examples(root.command('doctor'), 'doctor', 'doctor --strict --json')
    .description('look for what is wrong or will be: server, schema, leases, time-outs, growth, connections, workers')
    .option('--strict', 'warnings are failures, too (exit code 1)')
    .action(action(async () => (await import('../doctor/doctor.js')).doctor))
}

function scaleCommand(root: Command, action: Action): void {
  const { by } = SCALE_DEFAULTS
  examples(root.command('scale'), 'scale --json', 'scale --queues mail --scale-by wait --target 10s --max 20 --json')
    .description('the signals to scale workers by, and how many processes they ask for; it changes nothing')
    .option(
      '--queues <list>',
      'the queues (a,b) of the workers that are scaled; all unless given',
      queuesOf('--queues'),
    )
    .option(
      '--scale-by <signal>',
      `depth (due jobs) or wait (for how long the oldest due one waits); ${by} unless given`,
      oneWord('--scale-by', SCALE_SIGNALS),
    )
    .option(
      '--target <n>',
      `due jobs that may wait for each slot (depth; ${TARGET_DEFAULTS.depth} unless given), or for how long (wait; ${TARGET_DEFAULTS.wait})`,
    )
    .option('--min <n>', 'processes at least', count('--min', { min: 0, max: PROCESSES_MAX }), 1)
    .option('--max <n>', 'processes at most', count('--max', { min: 1, max: PROCESSES_MAX }), PROCESSES_MAX)
    .option(
      '--concurrency <n>',
      'slots of each process; those of the workers that are alive unless given',
      count('--concurrency', { min: 1, max: 10_000 }),
    )
    .action(action(async () => (await import('../commands/scale.js')).scale))
}
