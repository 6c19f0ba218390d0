/** The options of commands that change all jobs that match. */
import type { Command } from 'commander'
import { fingerprint } from '../../client/filters.js'
import { DEAD_REASONS } from '../../core/job.js'
import { duration } from '../../core/options.js'
import { checked, count, oneWord, rateOf } from '../values.js'
import { ofQueueAndKind } from './action.js'

const LIMIT_MAX = 1_000_000_000

/** What a dead letter may be chosen by. */
export function deadFilter(command: Command): Command {
  return ofQueueAndKind(command)
    .option('--reason <reason>', `dead for this reason: ${DEAD_REASONS.join(', ')}`, oneWord('--reason', DEAD_REASONS))
    .option(
      '--fingerprint <print>',
      'died of this failure, as "leasehold dead group" shows it',
      checked('--fingerprint', fingerprint),
    )
}

/** `since`: of which instant the age is. */
export function ageFilter(command: Command, since: string): Command {
  return command
    .option('--older-than <duration>', `${since} longer ago than this`, checked('--older-than', duration()))
    .option('--newer-than <duration>', `${since} no longer ago than this`, checked('--newer-than', duration()))
}

/** How it goes about it. */
export function bulkOptions(command: Command): Command {
  return command
    .option('--all', 'all there are, where no filter is given')
    .option('--max <n>', 'at most so many', count('--max', { min: 1, max: LIMIT_MAX }))
    .option('--rate <rate>', 'evenly, at most so many: 50/s, 600/m', rateOf('--rate'))
    .option(
      '--batch <n>',
      'so many in one call to the store; 500 unless given',
      count('--batch', { min: 1, max: 1_000 }),
    )
    .option('--dry-run', 'say what would be done, and do nothing')
    .option('--yes', 'do not ask')
}
