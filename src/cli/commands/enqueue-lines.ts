/** `leasehold enqueue KIND --stdin-lines`: a job for each line, in bounded memory. Called by enqueue.ts. */
import type { EnqueueResult } from '../../client/outcome.js'
import type { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import type { JobItem } from '../../core/kind.js'
import type { Answer } from '../answer.js'
import { type EndingCause, exitCodeOf, onEnding } from '../ending.js'
import { EXIT } from '../exit-codes.js'
import type { Invocation } from '../invocation.js'
import { printable, safeJson } from '../printable.js'
import { stdinLines } from '../stdin.js'
import type { Terminal } from '../terminal.js'
import { type EnqueueChoice, parsePayload, refuseSingleJobOptions, sharedOptions, type UnknownKind } from './enqueue.js'

interface Totals {
  created: number
  duplicate: number
  refused: number
  unknown: number
}

/** What became of the lines, told one by one. */
class Telling {
  readonly totals: Totals = { created: 0, duplicate: 0, refused: 0, unknown: 0 }

  constructor(
    private readonly terminal: Terminal,
    private readonly asked: AbortSignal,
  ) {}

  tell(line: number, result: EnqueueResult): void {
    this.totals[result.status] += 1
    if ('error' in result) {
      const { code, message } = result.error
      this.answer({ line, status: result.status, code, message })
      this.terminal.note(`line ${line}: ${result.status}: ${printable(message)} (${code})`)
    } else this.answer({ line, status: result.status, id: result.id })
  }

  get summary(): string {
    const parts = Object.entries(this.totals).filter(([word, count]) => count > 0 || word === 'created')
    return parts.map(([word, count]) => `${count} ${word}`).join(', ')
  }

  get failed(): boolean {
    return this.totals.refused + this.totals.unknown > 0
  }

  /** Not to a reader that has gone. */
  private answer(document: Record<string, unknown>): void {
    if (this.terminal.json && !this.asked.aborted) this.terminal.answer(safeJson(document))
  }
}

/** The jobs of the lines, and where each comes from. */
class Lines {
  /** The numbers of those that have no result yet. Read ahead of the results by a few batches. */
  readonly numbers: number[] = []

  constructor(
    private readonly kind: UnknownKind,
    private readonly telling: Telling,
    private readonly asked: AbortSignal,
  ) {}

  /** Empty lines are skipped. One that is no JSON is told and sinks no other: what came before it is stored already. */
  async *items(): AsyncGenerator<JobItem, void, undefined> {
    let number = 0
    for await (const line of stdinLines(this.asked)) {
      number += 1
      const item = line.trim() === '' ? undefined : this.itemOf(line, number)
      if (item === undefined) continue
      this.numbers.push(number)
      yield item
    }
  }

  private itemOf(line: string, number: number): JobItem | undefined {
    try {
      return this.kind.with(parsePayload(line, 'it'))
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      this.telling.tell(number, { status: 'refused', error })
      return undefined
    }
  }
}

export async function enqueueLines(
  invocation: Invocation,
  kind: UnknownKind,
  payload: string | undefined,
  choice: EnqueueChoice,
): Promise<Answer> {
  refuseSingleJobOptions(payload, choice)
  const { terminal } = invocation
  const queue = await invocation.store({}, 'may be made')
  const asked = new AbortController()
  const telling = new Telling(terminal, asked.signal)
  const stopHearing = onEnding((cause, before) => {
    if (before > 0) process.exit(exitCodeOf(cause))
    asked.abort(cause)
  })
  try {
    await enqueueAll(queue, new Lines(kind, telling, asked.signal), telling, choice)
  } catch (error) {
    // What came before it is stored, and has to be told before the failure is.
    terminal.note(telling.summary)
    throw error
  } finally {
    stopHearing()
  }
  return asked.signal.aborted
    ? stopped(terminal, telling, asked.signal.reason as EndingCause)
    : ended(terminal, telling)
}

async function enqueueAll(queue: Queue, lines: Lines, telling: Telling, choice: EnqueueChoice): Promise<void> {
  for await (const result of queue.enqueueStream(lines.items(), sharedOptions(choice)))
    telling.tell(lines.numbers.shift()!, result)
}

/** Whoever reads the answer has left, or a signal came: lines remain, so it is no success. */
function stopped(terminal: Terminal, { summary }: Telling, cause: EndingCause): Answer {
  const why = cause === 'reader gone' ? 'nobody reads the answer any more' : cause
  terminal.note(`stopped before the end of stdin (${why}): ${summary}`)
  return { exit: cause === 'reader gone' ? EXIT.failed : exitCodeOf(cause) }
}

function ended(terminal: Terminal, { summary, failed }: Telling): Answer {
  // The lines of JSON have no sum; where something is wrong, people get it.
  if (failed && terminal.json) terminal.note(summary)
  return { text: () => summary, ...(failed ? { exit: EXIT.failed } : {}) }
}
