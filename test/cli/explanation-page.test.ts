/** Why a job does not run, as people read it: broken to the terminal, with the command that ends it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explanationPage } from '../../src/cli/explanation-page.js'
import { plain } from '../../src/cli/paint.js'
import { widthOf } from '../../src/cli/width.js'
import type { Clause, Explanation } from '../../src/core/explanation.js'

const ID = '0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11'

function page(clauses: [Clause, ...Clause[]], more: Partial<Explanation> = {}, width?: number): string {
  const head = { id: ID, kind: 'mail.send', queue: 'mail', priority: 4, state: 'ready', nowMs: 0 } as const
  return explanationPage({ ...head, verdict: 'held', clauses, notes: [], ...more }, { width, paint: plain })
}

test('one clause has no number; a dead letter names the command that brings it back', () => {
  const dead: Clause = { code: 'dead', sentence: 'it is dead', reason: 'lost', endedAt: 0, redrive: 'needs force' }
  assert.equal(
    page([dead], { state: 'dead', verdict: 'ended' }),
    [
      `Job ${ID}`,
      '  mail.send in queue mail, priority 4 (normal): dead',
      '',
      'It has ended',
      '  it is dead',
      `  npx leasehold dead redrive ${ID} --force`,
    ].join('\n'),
  )
})

test('an estimate stands below the turn, and says of what it was reckoned', () => {
  const rank = { rank: 9, exact: true }
  const startsIn = { ms: 30_000, atLeast: false, basis: 'its rank' }
  const turn: Clause = {
    code: 'its turn',
    sentence: '8 jobs go before it',
    ...rank,
    inLevel: rank,
    next: false,
    priority: 4,
    able: 1,
    freeSlots: 0,
    startsIn,
  }
  assert.match(
    page([turn], { verdict: 'in line' }),
    /It stands in line\n {2}8 jobs go before it\n {2}estimated start: in about 30s, by its rank$/,
  )
  const least = { ...turn, startsIn: { ...startsIn, atLeast: true } }
  assert.match(page([least], { verdict: 'in line' }), /in more than 30s/)
})

test('no line but a command is wider than the terminal, and what a worker calls itself drives none', () => {
  const words = `${'many words '.repeat(30)}\u001b[2J`
  const text = page(
    [
      { code: 'paused', sentence: words, queue: 'mail' },
      { code: 'no worker', sentence: words, queue: 'mail' },
    ],
    { notes: [{ code: 'draining', sentence: words }] },
    50,
  )
  assert.doesNotMatch(text, /\u001b/)
  for (const line of text.split('\n')) assert.ok(widthOf(line) <= 55 - (line.includes('leasehold') ? 0 : 5), line)
  assert.match(text, /^ {2}1 many words/m)
  assert.match(text, /^ {4}npx leasehold queues resume mail$/m)
  assert.match(text, /^Besides\n {2}- many/m)
})
