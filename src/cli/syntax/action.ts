/** How commands are declared: what ties a declaration to the module that does the work, and what many of them share. */
import type { Command } from 'commander'
import type { Answer } from '../answer.js'
import type { Invocation } from '../invocation.js'
import { asTyped } from '../typed.js'
import { count, nameOf } from '../values.js'

/** What a command module exports: given the invocation, its arguments and its options. It may have nothing to answer. */
export type Run<Given extends unknown[]> = (invocation: Invocation, ...given: Given) => Promise<Answer | undefined>

/** Wraps the module of a command as commander calls it. */
export type Action = <Given extends unknown[]>(load: () => Promise<Run<Given>>) => (...given: Given) => Promise<void>

const LIST_LIMIT_MAX = 1_000

/** Below the help: what a person would type. */
export function examples(command: Command, ...lines: readonly string[]): Command {
  const title = lines.length === 1 ? 'Example' : 'Examples'
  return command.addHelpText('after', () =>
    asTyped(`\n${title}:\n${lines.map((line) => `  leasehold ${line}`).join('\n')}`),
  )
}

export function ofQueueAndKind(command: Command): Command {
  return command
    .option('--queue <name>', 'of this queue only', nameOf('--queue'))
    .option('--kind <name>', 'of this kind only', nameOf('--kind'))
}

export function paging(command: Command): Command {
  return pages(ofQueueAndKind(command))
}

/** Where the filters stand before. */
export function pages(command: Command): Command {
  return command
    .option('--limit <n>', 'how many', count('--limit', { min: 1, max: LIST_LIMIT_MAX }))
    .option('--after <cursor>', 'the next page: the cursor that the page before ended with')
}
