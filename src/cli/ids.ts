/** Ids of jobs as a command is given them: as arguments, or on stdin. Called by the commands that change jobs. */
import { knownJobId } from '../core/choices.js'
import { CommandError } from './failure.js'
import { stdinLines } from './stdin.js'

const IDS_MAX = 100_000

/** In order, each once. All are checked before anything is done: a mistake in one stops the command. */
export async function idsOf(given: readonly string[]): Promise<string[]> {
  const ids = new Set<string>()
  for await (const id of given.length === 1 && given[0] === '-' ? stdinLines() : given) {
    if (id.trim() === '') continue
    if (ids.size >= IDS_MAX) throw new CommandError('USAGE', `more than ${IDS_MAX} ids; give them in several calls`)
    ids.add(knownJobId(id.trim(), 'id'))
  }
  if (ids.size === 0) throw new CommandError('USAGE', 'no id was given')
  return [...ids]
}
