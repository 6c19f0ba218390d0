/** Why a job does not run, for people: head, what holds it, what else is worth knowing. Called by `jobs explain`. */
import { formatDuration } from '../core/duration.js'
import type { Clause, Explanation } from '../core/explanation.js'
import { priorityText } from './job-page.js'
import { printable } from './printable.js'
import type { TableView } from './table.js'
import { asTyped } from './typed.js'
import { wrapped } from './width.js'

const INDENT = 2
/** Where there is no terminal nothing is broken. */
const WIDTH_UNBROKEN = 10_000

const HEADINGS: Record<Explanation['verdict'], string> = {
  held: 'It is held',
  next: 'It goes next',
  'in line': 'It stands in line',
  running: 'It runs',
  ended: 'It has ended',
}

export function explanationPage(explanation: Explanation, view: TableView): string {
  const { id, kind, queue, priority, state, verdict, clauses, notes } = explanation
  const { paint } = view
  const sections = [
    [
      paint('bold', `Job ${id}`),
      ...lines(`${kind} in queue ${queue}, priority ${priorityText(priority)}: ${state}`, view),
    ],
    [paint('bold', HEADINGS[verdict]), ...clauses.flatMap((clause) => clauseLines(clause, explanation, view))],
    notes.length === 0
      ? []
      : [paint('bold', 'Besides'), ...notes.flatMap(({ sentence }) => lines(sentence, view, '-'))],
  ]
  return sections
    .filter((section) => section.length > 0)
    .map((section) => section.join('\n'))
    .join('\n\n')
}

function clauseLines(clause: Clause, explanation: Explanation, view: TableView): string[] {
  const mark = explanation.clauses.length > 1 ? String(explanation.clauses.indexOf(clause) + 1) : ''
  const way = wayOut(clause, explanation)
  return [
    ...lines(clause.sentence, view, mark),
    ...moreOf(clause).flatMap((text) => lines(text, view, ' '.repeat(mark.length))),
    // A command is copied as a whole: it is not broken.
    ...(way === undefined ? [] : [`${indent(mark)}${view.paint('cyan', asTyped(way))}`]),
  ]
}

/** What people see beside the sentence. */
function moreOf(clause: Clause): string[] {
  if (clause.code !== 'its turn' || clause.startsIn === undefined) return []
  const { ms, atLeast, basis } = clause.startsIn
  return [`estimated start: in ${atLeast ? 'more than' : 'about'} ${formatDuration(ms)}, by ${basis}`]
}

/** The command that ends it, where one does. */
function wayOut(clause: Clause, { id, queue }: Explanation): string | undefined {
  switch (clause.code) {
    case 'paused':
      return `leasehold queues resume ${clause.queue}`
    case 'concurrency':
    case 'rate':
      return `leasehold queues limit ${queue}`
    case 'not due':
      return `leasehold jobs retry ${id}`
    case 'dead':
      return `leasehold dead redrive ${id}${clause.redrive === 'ok' ? '' : ' --force'}`
    case 'no able worker':
      return 'leasehold workers'
    default:
      return undefined
  }
}

function indent(mark: string): string {
  return ' '.repeat(INDENT + (mark === '' ? 0 : mark.length + 1))
}

/** Broken between words, under each other. */
function lines(text: string, { width = WIDTH_UNBROKEN }: TableView, mark = ''): string[] {
  const head = indent(mark)
  const first = mark === '' ? head : `${' '.repeat(INDENT)}${mark} `
  return wrapped(printable(text), width - head.length).map((line, at) => `${at === 0 ? first : head}${line}`)
}
