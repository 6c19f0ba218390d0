/** `enqueue`. */
import type { Command } from 'commander'
import { JOB_CHOICES } from '../../core/choices.js'
import { isoInstant } from '../../core/due.js'
import { ATTEMPTS_MAX } from '../../core/policy.js'
import { checked, count, nameOf, PRIORITY_WORDS, priorityOf } from '../values.js'
import { type Action, examples } from './action.js'

export function enqueueCommand(root: Command, action: Action): void {
  examples(
    root.command('enqueue'),
    'enqueue email.send \'{"to":"ada@example.com"}\' --queue mail --delay 15m',
    'enqueue email.send --stdin-lines --queue mail < payloads.jsonl',
  )
    .description('store a job; its worker checks the payload')
    .argument('<kind>', 'the name of its kind, such as email.send')
    .argument('[payload]', 'JSON; - reads it from stdin; none for a kind without a payload')
    .option('--queue <name>', 'the queue; "default" unless given, as the kind is not known here', nameOf('--queue'))
    .option('--priority <priority>', PRIORITY_WORDS, priorityOf('--priority'))
    .option(
      '--delay <duration>',
      'start no sooner than this from now: 90s, 15m, 2h, 7d',
      checked('--delay', JOB_CHOICES.delay.check),
    )
    .option('--at <instant>', 'start no sooner than this: 2030-01-31T09:00:00Z', checked('--at', isoInstant))
    .option(
      '--key <key>',
      'idempotency key: one job is made for each',
      checked('--key', JOB_CHOICES.idempotencyKey.check),
    )
    .option(
      '--order-key <key>',
      'jobs of the queue with the same one run one after another',
      checked('--order-key', JOB_CHOICES.orderKey.check),
    )
    .option(
      '--limit-key <key>',
      'of jobs of the queue with the same one as many run at once as "queues limit --per-key" says',
      checked('--limit-key', JOB_CHOICES.limitKey.check),
    )
    .option(
      '--tenant <tenant>',
      'whose share of the queue it takes: tenants take turns',
      checked('--tenant', JOB_CHOICES.tenant.check),
    )
    .option('--id <uuid>', 'the id of the job, a UUID of version 7', checked('--id', JOB_CHOICES.id.check))
    .option(
      '--attempts <n>',
      'the first one included; 6 unless given, as the kind is not known here',
      count('--attempts', { min: 1, max: ATTEMPTS_MAX }),
    )
    .option(
      '--timeout <duration>',
      'the longest one attempt may run; 5m unless given, as the kind is not known here',
      checked('--timeout', JOB_CHOICES.timeout.check),
    )
    .option(
      '--stdin-lines',
      'read many payloads from stdin, one line of JSON for each job; a bad line is told and passed over (exit code 1)',
    )
    .action(action(async () => (await import('../commands/enqueue.js')).enqueue))
}
