/** Failures as the command line tells them: one line, its code, and what to do. Called by main for whatever was thrown. */
import { CommanderError } from 'commander'
import { EXIT, type ExitCode } from './exit-codes.js'
import { printable, printableLines, safeJson } from './printable.js'
import type { Terminal } from './terminal.js'
import { asTyped } from './typed.js'

/** A failure of the command line itself. Those of the library are QueueErrors. */
export class CommandError extends Error {
  override readonly name = 'CommandError'

  constructor(
    readonly code:
      | 'USAGE'
      | 'NO_STORE'
      | 'NOT_FOUND'
      | 'NOT_CONFIRMED'
      | 'DECLINED'
      | 'MODULE_FAILED'
      | 'DEMO_FAILED'
      | 'SCHEMA_REFUSED'
      | 'SCHEMA_NOT_EMPTY'
      | 'VERIFY_FAILED'
      | 'WAIT_TIMEOUT',
    message: string,
    readonly more: { fix?: string; cause?: unknown; exit?: ExitCode } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
  }
}

const EXIT_BY_CODE: Readonly<Record<string, ExitCode>> = {
  USAGE: EXIT.usage,
  NO_STORE: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  NOT_CONFIRMED: EXIT.usage,
  DECLINED: EXIT.declined,
  SCHEMA_NOT_EMPTY: EXIT.usage,
  UNKNOWN_OPTION: EXIT.usage,
  INVALID_OPTION: EXIT.usage,
  INVALID_NAME: EXIT.usage,
  INVALID_PAYLOAD: EXIT.usage,
  PAYLOAD_TOO_LARGE: EXIT.usage,
  UNKNOWN_STORE: EXIT.usage,
  DUPLICATE_HANDLER: EXIT.usage,
  BAD_OPTION: EXIT.usage,
  JOB_NOT_FOUND: EXIT.notFound,
}

/** What to do, where the message does not say it. */
const FIXES: Readonly<Record<string, string>> = {
  STORE_UNAVAILABLE: 'check that the store runs and that --url is right; "leasehold dev" starts one for development',
  DUPLICATE_HANDLER: 'export one handler for each kind; an array in the default export counts, too',
  OUTCOME_UNKNOWN: 'look with "leasehold jobs show ID" before you do it again',
  SCHEMA_MISSING: 'run "leasehold migrate" with the same --url and --schema',
  IDEMPOTENCY_BUSY: 'try again in a moment',
  QUEUE_FULL: 'let workers drain the queue, or raise its limit',
  UNEXPECTED: 'run it again with --verbose to see where it comes from',
}

/** A failure as it is told, and the exit code. */
export interface Failure {
  code: string
  message: string
  fix: string | undefined
  exit: ExitCode
  field?: unknown
  jobId?: unknown
  depth?: unknown
  limit?: unknown
  retryAfterMs?: unknown
  expectedWaitMs?: unknown
}

/** Tells what went wrong and returns the exit code. */
export function report(error: unknown, terminal: Terminal): ExitCode {
  const failure = failureOf(error)
  if (failure === undefined) return EXIT.ok
  if (terminal.json) {
    const { exit: _exit, ...told } = failure
    terminal.answer(safeJson({ error: told }))
  }
  // Whoever says no gets what he wants: that is no error.
  if (failure.code === 'DECLINED') terminal.note(failure.message)
  else terminal.note(`${terminal.notePaint('red', 'error:')} ${printable(failure.message)} (${failure.code})`)
  if (failure.fix !== undefined) terminal.note(`${terminal.notePaint('dim', 'fix:')}   ${printable(failure.fix)}`)
  if (terminal.verbose) terminal.note(printableLines(stacksOf(error)))
  return failure.exit
}

/** Undefined for what is no failure: help and version were shown. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof CommanderError) return usageFailure(error)
  const code = codeOf(error)
  const message = (error instanceof Error && error.message) || String(error)
  const fix = error instanceof CommandError ? error.more.fix : fixOf(code, message)
  const exit = (error instanceof CommandError ? error.more.exit : undefined) ?? EXIT_BY_CODE[code] ?? EXIT.failed
  const facts = Object.entries(factsOf(error)).filter(([, fact]) => fact !== undefined)
  return {
    code,
    message: asTyped(message),
    fix: fix === undefined ? undefined : asTyped(fix),
    exit,
    ...Object.fromEntries(facts),
  }
}

/** What else the error tells. */
function factsOf(
  error: unknown,
): Pick<Failure, 'field' | 'jobId' | 'depth' | 'limit' | 'retryAfterMs' | 'expectedWaitMs'> {
  const { field, jobId, depth, limit, retryAfterMs, expectedWaitMs } = (error ?? {}) as Partial<Failure>
  return { field, jobId, depth, limit, retryAfterMs, expectedWaitMs }
}

/** A message that names the command to run needs no second line that does. */
function fixOf(code: string, message: string): string | undefined {
  return message.includes('leasehold ') ? undefined : FIXES[code]
}

function usageFailure(error: CommanderError): Failure | undefined {
  if (error.code === 'commander.helpDisplayed' || error.code === 'commander.version') return undefined
  // The help itself was shown on stderr: nothing more is to be said of how.
  if (error.code === 'commander.help')
    return { code: 'USAGE', message: 'a command is missing', fix: undefined, exit: EXIT.usage }
  const message = error.message.replace(/^error: /, '').replace(/\n/g, ' ')
  return { code: 'USAGE', message, fix: 'add --help to see what there is', exit: EXIT.usage }
}

/** Codes of ours and of the embedded server; those of Node and of drivers mean nothing to the reader. */
function codeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  const ours = name === 'CommandError' || name === 'QueueError' || name === 'EmbeddedError'
  return ours && typeof code === 'string' ? code : 'UNEXPECTED'
}

/** For --verbose. */
export function stacksOf(error: unknown): string {
  const stacks: string[] = []
  let current: unknown = error
  while (current instanceof Error && stacks.length < 10) {
    stacks.push(current.stack ?? String(current))
    current = current.cause
  }
  return stacks.length === 0 ? String(error) : stacks.join('\ncaused by: ')
}
