/** `verify`: whether a store keeps what is promised of it. */
import type { Command } from 'commander'
import { WORKER_OPTIONS } from '../../worker/options.js'
import { checked, count, oneWord } from '../values.js'
import { SABOTAGE_NAMES } from '../verify/sabotage.js'
import { type Action, examples } from './action.js'

export function verifyCommand(root: Command, action: Action): void {
  examples(
    root.command('verify'),
    'verify',
    'verify --quick --json',
    'verify --quick --sabotage fence',
    'verify --log events.jsonl',
  )
    .description(
      'hold this store to its promises: every case of the suite, and drills with real processes, in a schema of its own, which is removed afterwards',
    )
    .option('--quick', 'short leases: about half a minute in place of one')
    .option(
      '--seconds <n>',
      'repeat the drills until so long is over; one round unless given',
      count('--seconds', { min: 1, max: 86_400 }),
    )
    .option(
      '--sabotage <what>',
      `break one promise in the schema of verify, to see that it is noticed: ${SABOTAGE_NAMES.join(', ')}`,
      oneWord('--sabotage', SABOTAGE_NAMES),
    )
    .option(
      '--log <file>',
      'judge a recorded log in place of a store, as connect(url, { log: { level: "debug" } }) writes it; - for stdin',
    )
    .option(
      '--lease <duration>',
      'with --log: the lease of its workers; 10s unless given',
      checked('--lease', WORKER_OPTIONS.lease.check),
    )
    .option('--shared-clock', 'with --log: one machine wrote all of it, so that its instants can be compared')
    .action(action(async () => (await import('../verify/verify.js')).verify))
}
