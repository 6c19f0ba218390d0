/** `migrate` and `bench`: the store itself. */
import type { Command } from 'commander'
import { duration } from '../../core/options.js'
import { SCENARIO_NAMES } from '../bench/names.js'
import { checked, count } from '../values.js'
import { type Action, examples } from './action.js'

export function storeCommands(root: Command, action: Action): void {
  const ways = ['migrate', 'migrate --check', 'migrate --print > leasehold.sql']
  examples(root.command('migrate'), ...ways, 'migrate --print-grants worker --to app_worker | psql')
    .description('make the schema, or bring it up to date')
    .option('--check', 'change nothing; fail when it is missing or outdated')
    .option('--print', 'change nothing; print the SQL, for those who run it themselves (needs no store)')
    .option(
      '--print-grants <rights>',
      'change nothing; print the SQL that gives a role the rights of a worker, a producer or a reader (needs no store)',
    )
    .option('--to <role>', 'with --print-grants: the role of the database')
    .action(action(async () => (await import('../commands/migrate.js')).migrate))
  examples(root.command('bench'), 'bench', 'bench drain --jobs 50000')
    .description('measure this store in a schema of its own, which is removed afterwards')
    .argument('[scenarios...]', `${SCENARIO_NAMES.join(', ')}; all of them unless given`)
    .option('--jobs <n>', 'jobs of each scenario', count('--jobs', { min: 10, max: 10_000_000 }))
    .option(
      '--max <duration>',
      'end each scenario after this at the latest',
      checked('--max', duration({ minMs: 1_000 })),
      '1m',
    )
    .action(action(async () => (await import('../bench/bench.js')).bench))
}
