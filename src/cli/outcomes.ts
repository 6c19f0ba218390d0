/** What became of jobs, one by one or counted: the answers of the commands that change jobs. */
import { grouped } from '../core/show.js'
import type { Answer } from './answer.js'
import { EXIT } from './exit-codes.js'
import { type Column, table } from './table.js'

/** What an answer of the store means for people, and whether it is what was asked for. */
export interface Meaning {
  text: string
  done: boolean
  /** What a dry run says; without it, what is said anyway. */
  would?: string
}
export type Meanings<Word extends string> = Readonly<Record<Word, Meaning>>

export interface JobOutcome<Word extends string> {
  id: string
  outcome: Word
}

/** Not all done: exit code 3, and the answer says which. */
export function outcomesAnswer<Word extends string>(
  results: readonly JobOutcome<Word>[],
  meanings: Meanings<Word>,
  { dryRun }: { dryRun?: boolean | undefined } = {},
): Answer {
  const undone = results.filter(({ outcome }) => !meanings[outcome].done)
  const columns: Column<JobOutcome<Word>>[] = [
    { head: 'ID', cell: ({ id }) => id },
    {
      head: 'OUTCOME',
      cell: ({ outcome }) => said(meanings[outcome], dryRun),
      flexible: true,
      colour: ({ outcome }) => (meanings[outcome].done ? 'green' : 'yellow'),
    },
  ]
  return {
    document: { ...(dryRun ? { dryRun } : {}), results },
    text: (view) => {
      const drawn = table(columns, results, view)
      return undone.length === 0 ? drawn : `${drawn}\n\n${undone.length} of ${results.length} not done`
    },
    ...(undone.length === 0 ? {} : { exit: EXIT.notFound }),
  }
}

/** `1,200  redriven`, a line for each answer. */
export function countsText<Word extends string>(
  answers: Partial<Record<Word, number>>,
  meanings: Meanings<Word>,
  { dryRun, paint, width }: { dryRun: boolean } & Parameters<typeof table>[2],
): string {
  const rows = (Object.entries(answers) as [Word, number][]).filter(([, count]) => count > 0)
  const columns: Column<[Word, number]>[] = [
    { head: 'JOBS', cell: ([, count]) => grouped(count), align: 'right' },
    {
      head: 'OUTCOME',
      cell: ([word]) => said(meanings[word], dryRun),
      flexible: true,
      colour: ([word]) => (meanings[word].done ? 'green' : 'yellow'),
    },
  ]
  return table(columns, rows, { width, paint })
}

function said({ text, would }: Meaning, dryRun: boolean | undefined): string {
  return dryRun ? (would ?? text) : text
}
