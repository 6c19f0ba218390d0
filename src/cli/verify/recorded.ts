/** `leasehold verify --log`: judges the recorded log of an application by the rules of the checker. Called by verify.ts. */
import { closeSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { durationMs } from '../../core/duration.js'
import { grouped } from '../../core/show.js'
import { check, type RuleCount, type Verdict } from '../../testing/checker/check.js'
import { historyOfEvents } from '../../testing/checker/event-log.js'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import { readStdin } from '../stdin.js'
import { type Column, type TableView, table } from '../table.js'
import { wrapped } from '../width.js'
import { findingLines } from './page.js'

const CHUNK_BYTES = 1 << 20
const STDIN = '-'

export interface RecordedChoice {
  lease: string | undefined
  sharedClock: boolean | undefined
}

export async function judgeRecorded(path: string, { lease, sharedClock }: RecordedChoice): Promise<Answer> {
  const history = historyOfEvents(path === STDIN ? (await readStdin()).split('\n') : linesOf(path), {
    clocks: sharedClock ? 'shared' : 'apart',
    ...(lease === undefined ? {} : { leaseMs: durationMs(lease, '--lease') }),
  })
  if (history.lines.read === 0)
    throw new CommandError('USAGE', 'no line of the log tells of an event', {
      fix: 'give what connect(url, { log: { level: "debug" } }) writes to stderr, or "leasehold work --log-level debug" to stdout: a line of JSON for each event',
    })
  const verdict = check(history)
  return answerOf(verdict, history.lines)
}

function* linesOf(path: string): Generator<string, void> {
  const file = opened(path)
  const decoder = new StringDecoder('utf8')
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let rest = ''
  try {
    for (let bytes = readSync(file, buffer); bytes > 0; bytes = readSync(file, buffer)) {
      const lines = (rest + decoder.write(buffer.subarray(0, bytes))).split('\n')
      rest = lines.pop()!
      yield* lines
    }
    yield rest + decoder.end()
  } finally {
    closeSync(file)
  }
}

function opened(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (error) {
    throw new CommandError('NOT_FOUND', `--log: the file cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

interface Lines {
  read: number
  skipped: number
}

function answerOf({ rules, findings, jobs, holds, ...counts }: Verdict, lines: Lines): Answer {
  const judged = rules.filter(isJudged)
  const verdict = holds ? (judged.length > 0 ? 'kept' : 'not judged') : 'broken'
  const { lost, settledTwice, doubledEffects, quarantinedInnocents, needlessTakeOvers, otherFaults } = counts
  const breaches = { lost, settledTwice, doubledEffects, quarantinedInnocents, needlessTakeOvers, otherFaults }
  return {
    document: { verdict, lines, jobs, breaches, rules, findings },
    text: (view) =>
      [
        `${grouped(lines.read)} events of ${grouped(jobs)} jobs; ${grouped(lines.skipped)} lines that tell of no event`,
        '',
        table(COLUMNS, rules.filter(isJudged), view),
        '',
        ...(findings.length === 0 ? [] : [...findingLines(findings, view), '']),
        ...closing(verdict, { judged: judged.length, all: rules.length }, view),
      ].join('\n'),
    ...(verdict === 'kept' ? {} : { exit: EXIT.unproven }),
  }
}

function isJudged({ judged, broken }: RuleCount): boolean {
  return broken > 0 || judged > 0
}

const COLUMNS: Column<RuleCount>[] = [
  { head: 'RULE', cell: ({ rule }) => rule, flexible: true },
  { head: 'JUDGED', cell: ({ judged }) => grouped(judged), align: 'right' },
  {
    head: 'BROKEN',
    cell: ({ broken }) => grouped(broken),
    align: 'right',
    colour: ({ broken }) => (broken > 0 ? 'red' : undefined),
  },
]

function closing(
  verdict: 'kept' | 'broken' | 'not judged',
  { judged, all }: { judged: number; all: number },
  { width, paint }: TableView,
): string[] {
  const sentences = {
    kept: `Kept: ${judged} of ${all} rules found something to judge in this log, and nothing wrong.`,
    broken: 'BROKEN: see above.',
    'not judged': 'NOT judged: no rule found anything to judge in this log; workers have to log at the level "debug".',
  }
  const colour = { kept: 'green', broken: 'red', 'not judged': 'yellow' } as const
  return wrapped(sentences[verdict], width ?? Number.POSITIVE_INFINITY).map((line) => paint(colour[verdict], line))
}
