/** The report of verify as people read it: promises, drills, one closing line. Pure. Called by verify.ts. */
import { formatDuration } from '../../core/duration.js'
import { grouped } from '../../core/show.js'
import type { RuleCount } from '../../testing/checker/check.js'
import { DRILL_TITLES } from '../../testing/verify/drill-plan.js'
import { idleRules } from '../../testing/verify/unfed-rules.js'
import type { Colour, Paint } from '../paint.js'
import { printable } from '../printable.js'
import type { TableView } from '../table.js'
import { wrapped } from '../width.js'
import type { PlayedDrill } from './play.js'
import type { JudgedPromise, PromiseGroup } from './promises.js'
import type { Verdict, VerifyReport } from './report.js'
import { SABOTAGES } from './sabotage.js'

const COLOURS: Record<Verdict, Colour> = { kept: 'green', broken: 'red', 'not judged': 'yellow' }
const VERDICT_WIDTH = 'not judged'.length + 2
const INDENT = 2
const WHY_LENGTH_MAX = 400
const FINDINGS_SHOWN = 5

export function page(report: VerifyReport, view: TableView): string {
  const { store, sabotage, drills, withoutDrills } = report
  const title = `What ${[store.name, store.version].filter((word) => word !== undefined).join(' ')} promises, and what was seen`
  return [
    view.paint('bold', title),
    ...(sabotage === undefined ? [] : lines(`Sabotaged: ${SABOTAGES[sabotage].sentence}.`, 0, view)),
    ...report.promises.flatMap((group) => ['', ...groupLines(group, view)]),
    '',
    ...(drills === undefined ? lines(`No drills: ${withoutDrills}.`, 0, view) : drillLines(drills, view)),
    '',
    ...closing(report, view),
  ].join('\n')
}

function groupLines({ group, promises }: PromiseGroup, view: TableView): string[] {
  return [view.paint('bold', group), ...promises.flatMap((promise) => promiseLines(promise, view))]
}

function promiseLines({ promise, verdict, cases }: JudgedPromise, view: TableView): string[] {
  const wrong = cases.filter((one) => one.verdict !== 'kept')
  return [
    ...judgedLines(verdict, promise, view),
    ...wrong.flatMap(({ name, why = '' }) => lines(`${name}: ${cutWhy(why)}`, INDENT + VERDICT_WIDTH, view, 'dim')),
  ]
}

/** Of an assertion the first line says what was wrong; what follows compares values. */
function cutWhy(why: string): string {
  return printable(why.replaceAll(/\s+/g, ' ').slice(0, WHY_LENGTH_MAX))
}

function judgedLines(verdict: Verdict, text: string, view: TableView): string[] {
  const [first = '', ...more] = wrapped(text, room(view, INDENT + VERDICT_WIDTH))
  const head = `${' '.repeat(INDENT)}${view.paint(COLOURS[verdict], verdict.padEnd(VERDICT_WIDTH))}`
  return [`${head}${first}`, ...more.map((line) => ' '.repeat(INDENT + VERDICT_WIDTH) + line)]
}

function drillLines(drills: NonNullable<VerifyReport['drills']>, view: TableView): string[] {
  const { rounds, jobs, kills, seconds, leaseMs, findings } = drills
  const facts = `leases of ${formatDuration(leaseMs)}, ${grouped(jobs)} jobs, ${kills} processes killed, ${rounds} ${rounds === 1 ? 'round' : 'rounds'} in ${seconds}s`
  return [
    view.paint('bold', 'Drills with real processes'),
    ...lines(facts, 0, view, 'dim'),
    ...drills.drills.flatMap((drill) => ['', ...oneDrill(drill, view)]),
    '',
    view.paint('bold', 'all drills together, by the rules of the checker'),
    ...ruleLines(drills.rules, view),
    ...findingLines(findings, view),
  ]
}

/** What the rules have looked at; a rule that has judged nothing proves nothing. */
function ruleLines(rules: readonly RuleCount[], view: TableView): string[] {
  const judged = rules.filter(({ judged }) => judged > 0)
  const broken = judged.filter((rule) => rule.broken > 0)
  if (broken.length > 0) return broken.flatMap(({ rule }) => judgedLines('broken', rule, view))
  return judgedLines(
    'kept',
    `${judged.length} rules that had anything to judge; ${rules.length - judged.length} had nothing`,
    view,
  )
}

function oneDrill(drill: PlayedDrill, view: TableView): string[] {
  const { promises, figures, findings } = drill
  return [
    view.paint('bold', `${drill.drill}: ${DRILL_TITLES[drill.drill]}`),
    ...promises.flatMap(({ promise, verdict, seen }) => [
      ...judgedLines(verdict, promise, view),
      ...lines(seen, INDENT + VERDICT_WIDTH, view, 'dim'),
    ]),
    ...findingLines(findings, view),
    ...lines(figuresText(figures), INDENT, view),
  ]
}

export function findingLines(findings: PlayedDrill['findings'], view: TableView): string[] {
  const more = findings.length - FINDINGS_SHOWN
  return [
    ...findings
      .slice(0, FINDINGS_SHOWN)
      .flatMap(({ rule, why }) => [
        ...judgedLines('broken', rule, view),
        ...lines(printable(why), INDENT + VERDICT_WIDTH, view, 'dim'),
      ]),
    ...(more > 0 ? lines(`and ${more} findings more`, INDENT + VERDICT_WIDTH, view, 'dim') : []),
  ]
}

/** `recoveryMs: 2900` as `recovery 2.9s`, `workedPerSecond: 180` as `worked per second 180`. */
function figuresText(figures: Record<string, number>): string {
  return Object.entries(figures)
    .map(([name, value]) => {
      const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
      if (words.endsWith(' ms')) return `${words.slice(0, -3)} ${formatDuration(value)}`
      return words.endsWith(' mb') ? `${words.slice(0, -3)} ${grouped(value)} MB` : `${words} ${grouped(value)}`
    })
    .join(', ')
}

function closing({ verdict, cases, drills, sabotage }: VerifyReport, view: TableView): string[] {
  const drilled =
    drills === undefined
      ? ''
      : ` and ${drills.drills.filter((one) => one.verdict === 'kept').length} of ${drills.drills.length} drills`
  const judged = cases.all - cases.notJudged
  const tail = cases.notJudged === 0 ? '' : `; ${cases.notJudged} cases were not judged`
  const counts = `${cases.kept} of ${judged} cases${drilled}`
  const sentences: Record<Verdict, string> = {
    kept: sabotage === undefined ? `Kept: ${counts}${tail}.` : `Kept: ${counts}${tail}. The sabotage was NOT noticed.`,
    broken:
      sabotage === undefined
        ? `BROKEN: only ${counts} are as promised${tail}.`
        : `BROKEN, as it was sabotaged: only ${counts} are as promised${tail}.`,
    'not judged': `NOT judged: ${unjudgedText(drills)}; ${counts} are as promised${tail}.`,
  }
  return lines(sentences[verdict], 0, view, COLOURS[verdict])
}

function unjudgedText(drills: VerifyReport['drills']): string {
  const idle = idleRules(drills?.rules ?? [])
  if (idle.length === 0) return 'the store was away for some of it'
  return `nothing in the drills was about ${idle.map((rule) => `"${rule}"`).join(', ')}`
}

function lines(text: string, indent: number, view: TableView, colour?: Colour): string[] {
  const paint: Paint = colour === undefined ? (_, plain) => plain : view.paint
  return wrapped(text, room(view, indent)).map((line) => ' '.repeat(indent) + paint(colour ?? 'dim', line))
}

function room({ width }: TableView, indent: number): number {
  return width === undefined ? Number.POSITIVE_INFINITY : width - indent
}
