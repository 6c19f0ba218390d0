#!/usr/bin/env node
/** The command `leasehold`: reads the arguments, runs one command, ends with its exit code. Called by people and scripts. */
import { watchReader } from './ending.js'
import { EXIT, type ExitCode } from './exit-codes.js'
import { report } from './failure.js'
import { program } from './program.js'
import { realTerminal, type Terminal } from './terminal.js'

watchReader()
const code = await main(process.argv.slice(2))
// What was written to a pipe has to arrive; what a module of handlers has left open must not keep the command alive.
await Promise.all([flushed(process.stdout), flushed(process.stderr)])
process.exit(code)

async function main(argv: string[]): Promise<ExitCode> {
  const terminal = terminalFor(argv)
  let code: ExitCode = EXIT.ok
  try {
    const root = program(terminal, (exit) => {
      code = exit
    })
    await root.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    return report(error, terminal)
  }
}

/** Known before the arguments are read, as a mistake in them has to be told the right way. */
function terminalFor(argv: string[]): Terminal {
  const options = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  return realTerminal({ json: options.includes('--json'), verbose: options.includes('--verbose') })
}

/** Also when its reader has gone: then there is nothing to wait for. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}
