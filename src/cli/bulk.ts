/**
 * Changes all jobs that match: rehearses, asks, shows how it goes, and ends between two batches when it is asked to,
 * saying what was done and how to go on. Called by the commands that take filters.
 */
import type {
  BulkAnswer,
  BulkOptions,
  BulkResult,
  BulkProgress as Progress,
  Unconfirmed,
} from '../client/bulk-options.js'
import { grouped } from '../core/show.js'
import type { MovedOn } from '../storage/storage.js'
import type { Answer } from './answer.js'
import { BulkProgress } from './bulk-progress.js'
import { confirm } from './confirm.js'
import { causeOf, causeText, type EndingCause, exitCodeOf, untilAsked } from './ending.js'
import { EXIT } from './exit-codes.js'
import { CommandError } from './failure.js'
import type { Invocation } from './invocation.js'
import { countsText, type Meanings } from './outcomes.js'
import { type Column, type TableView, table } from './table.js'

/** What people gave, beside the filters. */
export interface BulkChoice {
  all?: true
  max?: number
  rate?: number
  batch?: number
  dryRun?: true
  yes?: true
}

export interface BulkTask<Word extends string> {
  /** `Redrive`, to ask with. */
  readonly verb: string
  /** `redriven`, to tell with. */
  readonly word: string
  /** One of what it is done to, and many. */
  readonly noun: readonly [one: string, many: string]
  readonly destructive: boolean
  /** As people typed it; see `filterText`. */
  readonly filter: string
  readonly meanings: Meanings<Word>
  run(options: BulkOptions): Promise<BulkResult<Word>>
}

/** What may be said of any job of a run. */
const OF_EVERY_RUN: Meanings<MovedOn | Unconfirmed> = {
  'moved on': { text: 'left alone: it changed before its turn, and matches no longer', done: false },
  unconfirmed: { text: 'the store did not answer whether it was done, and keeps no record of it', done: false },
}

function meaningsOf<Word extends string>({ meanings }: BulkTask<Word>): Meanings<BulkAnswer<Word>> {
  return { ...meanings, ...OF_EVERY_RUN } as Meanings<BulkAnswer<Word>>
}

/** Filters that say what is meant; ages and states only narrow it. */
const NAMING = new Set(['queue', 'kind', 'reason', 'fingerprint'])

/** Filters that a command was given, by their options; refuses what does not go with ids. */
export function filtersOf<Filter extends object>(
  ids: readonly string[],
  filters: Filter,
  { all, max }: BulkChoice,
): Filter | undefined {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined)
  if (ids.length > 0) {
    const wrong = given[0]?.[0] ?? (all ? 'all' : max === undefined ? undefined : 'max')
    if (wrong !== undefined) throw new CommandError('USAGE', `give ids or filters, not both: ${optionOf(wrong)}`)
    return undefined
  }
  if (!all && !given.some(([name]) => NAMING.has(name)))
    throw given.length === 0
      ? new CommandError('USAGE', 'nothing was chosen', { fix: 'give ids, filters, or --all' })
      : new CommandError('USAGE', `${optionOf(given[0]![0])} alone may be all there are`, {
          fix: 'name a queue or a kind, too, or give --all',
        })
  return { ...(Object.fromEntries(given) as Filter), ...(all ? { all } : {}) }
}

/** `--queue mail --older-than 2d`: what is asked about is named as it was typed. */
export function filterText({ all, ...filter }: { all?: boolean | undefined }): string {
  const words = Object.entries(filter).flatMap(([name, value]) =>
    value === undefined ? [] : [`${optionOf(name)} ${Array.isArray(value) ? value.join(',') : String(value)}`],
  )
  return [...(all ? ['--all'] : []), ...words].join(' ')
}

function optionOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

export async function bulk<Word extends string>(
  invocation: Invocation,
  task: BulkTask<Word>,
  choice: BulkChoice,
): Promise<Answer> {
  const { terminal } = invocation
  if (choice.dryRun) return rehearsed(task, await task.run({ ...optionsOf(choice), dryRun: true }))
  const expected = await agreed(invocation, task, choice)
  // Nothing of it can be done: nobody needs to be asked.
  if (expected?.expected === 0) return told(task, asRun(expected), undefined)
  const { env } = (await invocation.store()).connection
  const total = expected?.ended === 'all' || choice.max !== undefined ? expected?.expected : undefined
  const progress = new BulkProgress(terminal, env, { word: task.word, total })
  return untilAsked(async (asked) => {
    let done = 0
    let unconfirmed = 0
    const onProgress = (so: Progress): void => {
      done = so.done
      unconfirmed = so.answers.unconfirmed ?? 0
      progress.show(done)
    }
    try {
      const result = await task.run({ ...optionsOf(choice), signal: asked, onProgress })
      progress.end()
      return ended(invocation, task, result, { asked, limited: choice.max !== undefined })
    } catch (error) {
      progress.end()
      const doubt = unconfirmed === 0 ? '' : `, ${grouped(unconfirmed)} unconfirmed`
      terminal.note(`${grouped(done)} ${task.word}${doubt} before it failed; the same command goes on with the rest`)
      throw error
    }
  })
}

function optionsOf({ max, rate, batch }: BulkChoice): BulkOptions {
  return {
    ...(max === undefined ? {} : { limit: max }),
    ...(rate === undefined ? {} : { rate }),
    ...(batch === undefined ? {} : { batch }),
  }
}

/** What is to be expected, where somebody was asked; they have to know how many that is. */
async function agreed<Word extends string>(
  { terminal }: Invocation,
  task: BulkTask<Word>,
  choice: BulkChoice,
): Promise<BulkResult<Word> | undefined> {
  const { destructive, verb, filter } = task
  if (choice.yes || !terminal.asks) {
    await confirm(terminal, '', { ...choice, destructive })
    return undefined
  }
  const expected = await task.run({ ...optionsOf(choice), dryRun: true })
  const { expected: most = 0, matched } = expected
  if (most === 0) return expected
  const more = most === matched ? '' : ` of ${grouped(matched)} that match`
  const forGood = destructive ? ' for good' : ''
  await confirm(terminal, `${verb} ${counted(task, expected, choice)}${more} (${filter})${forGood}?`, { destructive })
  return expected
}

/** A rehearsal without a limit of its own looks at so many and no more. */
function counted<Word extends string>(
  { noun }: BulkTask<Word>,
  { expected = 0, ended: how }: BulkResult<Word>,
  { max }: BulkChoice,
): string {
  const least = how === 'limit' && max === undefined ? 'at least ' : ''
  return `${least}${grouped(expected)} ${expected === 1 ? noun[0] : noun[1]}`
}

/** What was foreseen is what came of it, where nothing could be done. */
function asRun<Word extends string>({ expected: _, ...result }: BulkResult<Word>): BulkResult<Word> {
  return { ...result, dryRun: false }
}

/** The document is that of a run, with zeros in it. */
function nothing<Word extends string>({ noun }: BulkTask<Word>, document: BulkResult<Word>): Answer {
  return { document, text: () => `no ${noun[0]} matches`, exit: EXIT.notFound }
}

function rehearsed<Word extends string>(task: BulkTask<Word>, result: BulkResult<Word>): Answer {
  if (result.matched === 0) return nothing(task, result)
  return {
    document: result,
    text: (view) => {
      const cut = result.ended === 'limit' ? [`\nIt looked at the first ${grouped(result.matched)} that match.`] : []
      return [
        `dry run, nothing was done`,
        '',
        countsText(result.answers, meaningsOf(task), { ...view, dryRun: true }),
        ...cut,
        '',
        sampleText(result, view),
      ].join('\n')
    },
    ...(result.expected === result.matched ? {} : { exit: EXIT.notFound }),
  }
}

function sampleText({ sample, matched }: BulkResult, view: TableView): string {
  const columns: Column<BulkResult['sample'][number]>[] = [
    { head: 'ID', cell: ({ id }) => id },
    { head: 'KIND', cell: ({ kind }) => kind, flexible: true },
    { head: 'QUEUE', cell: ({ queue }) => queue, fromWidth: 60 },
  ]
  const more = matched - sample.length
  const drawn = table(columns, sample, view)
  return more === 0 ? drawn : `${drawn}\n${view.paint('dim', `… and ${grouped(more)} more`)}`
}

function ended<Word extends string>(
  { terminal }: Invocation,
  task: BulkTask<Word>,
  result: BulkResult<Word>,
  { asked, limited }: { asked: AbortSignal; limited: boolean },
): Answer {
  // Who named a limit knows that there may be more.
  if (result.ended === 'limit' && !limited)
    terminal.note(`one run comes to so many jobs; the same command goes on with the rest`)
  const cause = result.ended === 'stopped' ? causeOf(asked) : undefined
  if (cause !== undefined) terminal.note(`stopped by ${causeText(cause)}; the same command goes on with the rest`)
  return told(task, result, cause)
}

function told<Word extends string>(
  task: BulkTask<Word>,
  result: BulkResult<Word>,
  cause: EndingCause | undefined,
): Answer {
  if (result.matched === 0 && cause === undefined) return nothing(task, result)
  const complete = result.done === result.matched
  const counts = (view: TableView): string => countsText(result.answers, meaningsOf(task), { ...view, dryRun: false })
  return {
    document: result,
    text: (view) => (complete ? `${grouped(result.done)} ${task.word}` : counts(view)),
    exit: cause !== undefined ? exitCodeOf(cause) : complete ? EXIT.ok : EXIT.notFound,
  }
}
