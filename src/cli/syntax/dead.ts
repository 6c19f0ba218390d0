/** `dead list`, `show`, `group`, `redrive` and `discard`. */
import type { Command } from 'commander'
import { count } from '../values.js'
import { type Action, examples, ofQueueAndKind, pages } from './action.js'
import { ageFilter, bulkOptions, deadFilter } from './bulk.js'

const IDS = 'ids, or - for ids on stdin, one a line'

export function deadCommands(root: Command, action: Action): void {
  const dead = root.command('dead').description('dead letters: jobs that ended badly, with all of their history')
  const list = dead.command('list').description('list dead letters, the newest first')
  deadFilter(list)
  pages(list).action(action(async () => (await import('../commands/dead-list.js')).deadList))
  examples(list, 'dead list --queue payments', 'dead list --fingerprint 3f9c2a1b7d40')
  examples(dead.command('show'), 'dead show 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11')
    .description('all there is to know of a dead letter')
    .argument('<id>')
    .action(action(async () => (await import('../commands/jobs-show.js')).deadShow))
  examples(ofQueueAndKind(dead.command('group')), 'dead group', 'dead group --queue payments')
    .description('dead letters by what they died of: how many, since when, of which error')
    .option('--limit <n>', 'groups at most', count('--limit', { min: 1, max: 1_000 }))
    .action(action(async () => (await import('../commands/dead-group.js')).deadGroup))
  redriveCommand(dead, action)
  discardCommand(dead, action)
}

function redriveCommand(dead: Command, action: Action): void {
  const redrive = dead
    .command('redrive')
    .description('bring dead letters back with fresh attempts: same id, key and payload')
    .argument('[ids...]', IDS)
  bulkOptions(ageFilter(deadFilter(redrive), 'dead'))
    .option('--force', 'also at-most-once jobs that may have run')
    .action(action(async () => (await import('../commands/dead-steer.js')).deadRedrive))
  examples(
    redrive,
    'dead redrive 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11',
    'dead redrive --fingerprint 3f9c2a1b7d40 --dry-run',
    'dead redrive --kind charge --reason failed --rate 50/s',
  )
}

function discardCommand(dead: Command, action: Action): void {
  const discard = dead
    .command('discard')
    .description('delete dead letters for good; their idempotency keys are free')
    .argument('[ids...]', IDS)
  bulkOptions(ageFilter(deadFilter(discard), 'dead')).action(
    action(async () => (await import('../commands/dead-steer.js')).deadDiscard),
  )
  examples(discard, 'dead discard --reason expired --older-than 7d --dry-run', 'dead discard --kind audit --yes')
}
