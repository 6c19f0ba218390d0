/** What is piped into a command. Called by `enqueue` and by the commands that take ids. */
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { CommandError } from './failure.js'

export async function readStdin(host: NodeJS.Process = process): Promise<string> {
  refuseTerminal(host)
  return text(host.stdin)
}

/** Lines as they come, without their ends; never more in memory than the reader takes. `stop` ends them. */
export async function* stdinLines(
  stop?: AbortSignal,
  host: NodeJS.Process = process,
): AsyncGenerator<string, void, undefined> {
  refuseTerminal(host)
  try {
    const signal = stop === undefined ? {} : { signal: stop }
    for await (const line of createInterface({ input: host.stdin, crlfDelay: Number.POSITIVE_INFINITY, ...signal })) {
      // Those that were read ahead come also after the end was asked for.
      if (stop?.aborted) return
      yield line
    }
  } finally {
    // A reader that stops early must not be kept alive by a writer that goes on.
    host.stdin.destroy()
  }
}

/** Somebody at a terminal who did not mean to type would wait for nothing. */
function refuseTerminal(host: NodeJS.Process): void {
  if (host.stdin.isTTY !== true) return
  throw new CommandError('USAGE', 'stdin is a terminal; pipe the input into this command', {
    fix: "printf '%s' '{\"n\":1}' | leasehold enqueue KIND -",
  })
}
