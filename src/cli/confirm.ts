/** Asks before something is done to many. Called by commands that act on whatever matches a filter, or that delete. */
import { createInterface } from 'node:readline/promises'
import { EXIT } from './exit-codes.js'
import { CommandError } from './failure.js'
import type { Terminal } from './terminal.js'

export interface Asking {
  yes?: boolean
  /** What it does cannot be undone: where nobody can be asked it has to be said by --yes. */
  destructive?: boolean
}

/** Returns when the answer is yes, or when there is nobody to ask and no need to. Throws DECLINED or NOT_CONFIRMED. */
export async function confirm(terminal: Terminal, question: string, { yes, destructive }: Asking): Promise<void> {
  if (yes) return
  if (!terminal.asks) {
    if (!destructive) return
    throw new CommandError('NOT_CONFIRMED', `nothing was done: this cannot be undone, and nobody is here to be asked`, {
      fix: 'give --yes, once it is sure',
    })
  }
  const answer = await ask(question)
  if (answer !== undefined && /^y(es)?$/i.test(answer.trim())) return
  throw new CommandError('DECLINED', 'nothing was changed', answer === undefined ? { exit: EXIT.interrupted } : {})
}

/** Undefined: whoever was asked left by Ctrl-C or Ctrl-D. */
async function ask(question: string): Promise<string | undefined> {
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  const left = new Promise<undefined>((resolve) => {
    asking.once('SIGINT', () => resolve(undefined))
    asking.once('close', () => resolve(undefined))
  })
  try {
    const answer = await Promise.race([asking.question(`${question} [y/N] `), left])
    // The cursor stands behind the question.
    if (answer === undefined) process.stderr.write('\n')
    return answer
  } finally {
    asking.close()
  }
}
