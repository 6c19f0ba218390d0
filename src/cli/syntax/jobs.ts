/** `jobs list`, `show`, `explain`, `cancel` and `retry`. */
import type { Command } from 'commander'
import { statesAmong, statesOf } from '../values.js'
import { type Action, examples, ofQueueAndKind, paging } from './action.js'
import { ageFilter, bulkOptions } from './bulk.js'

const IDS = 'ids, or - for ids on stdin, one a line'

export function jobsCommands(root: Command, action: Action): void {
  const jobs = root.command('jobs').description('look at jobs, cancel and retry them')
  paging(jobs.command('list').description('list jobs by state; without --state the first few of every state'))
    .option('--state <states>', 'one or more, with commas; "pending" is all that wait', statesOf('--state'))
    .action(action(async () => (await import('../commands/jobs-list.js')).jobsList))
  examples(
    jobs.commands.at(-1)!,
    'jobs list --state pending --queue mail',
    "jobs list --state dead --json | jq -r '.jobs[].id'",
  )
  examples(jobs.command('show'), 'jobs show 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11')
    .description('all there is to know of a job: what happened to it, when and where')
    .argument('<id>')
    .action(action(async () => (await import('../commands/jobs-show.js')).jobsShow))
  examples(jobs.command('explain'), 'jobs explain 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11')
    .description('why a job does not run, or where it is: what holds it, and who goes before it')
    .argument('<id>')
    .action(action(async () => (await import('../commands/jobs-explain.js')).jobsExplain))
  cancelCommand(jobs, action)
  retryCommand(jobs, action)
}

function cancelCommand(jobs: Command, action: Action): void {
  const cancel = jobs
    .command('cancel')
    .description('end waiting jobs now; the handlers of running ones get their signal')
    .argument('[ids...]', IDS)
  ofQueueAndKind(cancel).option(
    '--state <states>',
    'ready, delayed, retrying, blocked, running, or pending for all that wait; pending unless given',
    statesAmong('--state', ['ready', 'delayed', 'retrying', 'blocked', 'running']),
  )
  bulkOptions(ageFilter(cancel, 'enqueued')).action(
    action(async () => (await import('../commands/jobs-steer.js')).jobsCancel),
  )
  examples(
    cancel,
    'jobs cancel 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11',
    'jobs cancel --queue mail --older-than 2d --dry-run',
  )
}

function retryCommand(jobs: Command, action: Action): void {
  const retry = jobs
    .command('retry')
    .description('start retrying (and delayed) jobs now, at no cost of an attempt')
    .argument('[ids...]', IDS)
  ofQueueAndKind(retry).option(
    '--state <states>',
    'retrying, delayed, or both with a comma; retrying unless given, as delayed jobs were meant for later',
    statesAmong('--state', ['delayed', 'retrying']),
  )
  bulkOptions(ageFilter(retry, 'enqueued')).action(
    action(async () => (await import('../commands/jobs-steer.js')).jobsRetry),
  )
  examples(retry, 'jobs retry 0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11', 'jobs retry --kind email.send --rate 50/s')
}
