/** What the command line takes: every command with its arguments and options (syntax/*). What it does is imported when it is called. */
import { createRequire } from 'node:module'
import { Command, Help } from 'commander'
import { didYouMean } from '../core/suggest.js'
import { tell } from './answer.js'
import { type ExitCode, exitCodeHelp } from './exit-codes.js'
import { CommandError } from './failure.js'
import { Invocation, type StoreOptions } from './invocation.js'
import type { Action, Run } from './syntax/action.js'
import { deadCommands } from './syntax/dead.js'
import { enqueueCommand } from './syntax/enqueue.js'
import { jobsCommands } from './syntax/jobs.js'
import { queuesCommands } from './syntax/queues.js'
import { startCommands } from './syntax/start.js'
import { storeCommands } from './syntax/store.js'
import { verifyCommand } from './syntax/verify.js'
import { watchCommands } from './syntax/watch.js'
import type { Terminal } from './terminal.js'
import { wrapped } from './width.js'

/** `ended` hears the exit code of the command, where it is not a failure. */
export function program(terminal: Terminal, ended: (code: ExitCode) => void): Command {
  const root = new Command('leasehold')
    .description('A distributed job queue: look at jobs, steer queues, run workers.')
    .version(version(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .option(
      '--url <url>',
      'the store (or LEASEHOLD_URL): postgres://user@host/database, embedded:./data; several are the partitions of one queue, with --url by=tenant',
      (url: string, before?: string) => (before === undefined ? url : `${before},${url}`),
    )
    .option('--schema <name>', 'the PostgreSQL schema of the tables (or LEASEHOLD_SCHEMA); leasehold unless given')
    .option('--json', 'answer with one JSON document (or JSON lines) on stdout and nothing else')
    .option('--verbose', 'show the stack of errors')
    .configureHelp({ showGlobalOptions: true, formatItem: helpItem })
    // Failures are told in one place, by main; an unknown option is thrown and not printed.
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .addHelpText('after', `\n${exitCodeHelp()}`)
  const action: Action = (load) => acting(root, terminal, ended, load)
  startCommands(root, action)
  enqueueCommand(root, action)
  jobsCommands(root, action)
  deadCommands(root, action)
  queuesCommands(root, action)
  watchCommands(root, action)
  storeCommands(root, action)
  verifyCommand(root, action)
  helpCommand(root)
  return root
}

/** Columns below which what a word means stands in a line of its own. */
const BESIDE_WIDTH_MIN = 64

function helpItem(this: Help, term: string, termWidth: number, description: string, helper: Help): string {
  const width = helper.helpWidth ?? Number.POSITIVE_INFINITY
  if (width >= BESIDE_WIDTH_MIN || description === '')
    return Help.prototype.formatItem.call(this, term, termWidth, description, helper)
  const below = wrapped(description, width - 6).map((line) => `      ${line}`)
  return [`  ${term}`, ...below].join('\n')
}

/** The one that commander brings looks at the first word only. */
function helpCommand(root: Command): void {
  root
    .command('help')
    .description('show the help of a command')
    .argument('[command...]', 'such as: jobs list')
    .action((words: string[]) => commandOf(root, words).outputHelp())
}

function commandOf(root: Command, words: readonly string[]): Command {
  return words.reduce((command, word) => {
    const found = command.commands.find((one) => one.name() === word)
    if (found !== undefined) return found
    const known = command.commands.map((one) => one.name())
    throw new CommandError('USAGE', `unknown command '${word}'${didYouMean(word, known)}`, {
      fix: 'add --help to see what there is',
    })
  }, root)
}

function acting<Given extends unknown[]>(
  root: Command,
  terminal: Terminal,
  ended: (code: ExitCode) => void,
  load: () => Promise<Run<Given>>,
): (...given: Given) => Promise<void> {
  return async (...given) => {
    const invocation = new Invocation(terminal, root.opts<StoreOptions>())
    try {
      const run = await load()
      const answer = await run(invocation, ...given)
      await invocation.tellSilent()
      if (answer === undefined) return
      tell(answer, terminal)
      if (answer.exit !== undefined) ended(answer.exit)
    } finally {
      await invocation.close()
    }
  }
}

/** By the package's own name, as this file lies at another depth in each build. */
function version(): string {
  const { version: found } = createRequire(import.meta.url)('leasehold/package.json') as { version: string }
  return found
}
