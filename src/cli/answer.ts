/** What a command has to say, once for people and once for scripts. Made by the commands, told by main. */
import type { ExitCode } from './exit-codes.js'
import { safeJson } from './printable.js'
import type { TableView } from './table.js'
import type { Terminal } from './terminal.js'

export interface Answer {
  /** For scripts: the one JSON document. Instants as ISO text, durations in milliseconds. Absent after JSON lines. */
  document?: unknown
  /** For people. Absent where all was said before. */
  text?: (view: TableView) => string
  /** Where it is not `ok`. */
  exit?: ExitCode
}

export function tell(answer: Answer, terminal: Terminal): void {
  if (terminal.json) {
    if (answer.document !== undefined) terminal.answer(safeJson(answer.document))
  } else if (answer.text !== undefined) terminal.answer(answer.text(terminal))
}
