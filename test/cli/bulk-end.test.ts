/** What a command says of a bulk change that came to an end of its own before all that matches. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { type BulkTask, bulk } from '../../src/cli/bulk.js'
import type { Invocation } from '../../src/cli/invocation.js'
import type { BulkResult } from '../../src/client/bulk-options.js'
import { realEnv } from '../../src/core/env.js'

/** A command that nobody watches, over a run that ended so. */
async function notes(ended: BulkResult['ended'], max?: number): Promise<string[]> {
  const said: string[] = []
  const terminal = { asks: false, redraws: false, note: (text: string) => void said.push(text) }
  const store = async () => ({ connection: { env: realEnv } })
  const result: BulkResult<'ok'> = { matched: 3, done: 3, answers: { ok: 3 }, ended, dryRun: false, sample: [] }
  const task: BulkTask<'ok'> = {
    verb: 'Start',
    word: 'started',
    noun: ['job', 'jobs'],
    destructive: false,
    filter: '--all',
    meanings: { ok: { text: 'started', done: true } },
    run: async () => result,
  }
  await bulk({ terminal, store } as unknown as Invocation, task, max === undefined ? {} : { max })
  return said
}

test('a run that comes to no more jobs at once says that the same command goes on; one with --max or with all does not', async () => {
  assert.deepEqual(await notes('limit'), ['one run comes to so many jobs; the same command goes on with the rest'])
  assert.deepEqual(await notes('limit', 3), [])
  assert.deepEqual(await notes('all'), [])
})
