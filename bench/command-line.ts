/** From the words of the command line to what is to be run, and the help. Pure. Called by main.ts. */
import { didYouMean } from '../src/core/suggest.js'
import { type GivenOptions, Refusal, readOptions, type Size, shownOption } from './options.js'
import type { Scenario } from './scenario.js'

/** One scenario in one form. */
export interface Run {
  readonly scenario: Scenario
  readonly options: Readonly<Record<string, unknown>>
}

export type Command =
  | { readonly do: 'help'; readonly text: string }
  | { readonly do: 'run'; readonly runs: readonly Run[]; readonly size: Size; readonly form: 'lines' | 'json' }

/** What every scenario takes. */
const COMMON = {
  '--json': 'a line of JSON for each result, with all figures and conditions',
  '--quick': 'small sizes: shows that it works, measures nothing',
  '--help': 'this text, or the options of a scenario',
}
const ALL = 'all'

/** Throws a Refusal where the words name a scenario or an option that there is not. */
export function readCommand(words: readonly string[], scenarios: readonly Scenario[]): Command {
  const { names, given } = sorted(words, scenarios)
  const [name, ...more] = names
  const help = given.delete('help') || given.delete('h')
  if (name === undefined && !help && given.size > 0)
    throw new Refusal(`name a scenario first; one of ${shownNames(scenarios)}`)
  if (name === undefined) return { do: 'help', text: helpOf(scenarios) }
  if (more.length > 0) throw new Refusal(`one scenario at a time, or "${ALL}"; what is "${more[0]}"?`)
  const found = scenarios.find((scenario) => scenario.name === name)
  if (found === undefined && name !== ALL) throw unknown(name, scenarios)
  if (help) return { do: 'help', text: found === undefined ? helpOf(scenarios) : helpOfOne(found) }
  const form = given.delete('json') ? 'json' : 'lines'
  const size: Size = given.delete('quick') ? 'quick' : 'full'
  const forms = found === undefined ? everyForm(scenarios, given) : [{ scenario: found, given }]
  return {
    do: 'run',
    size,
    form,
    runs: forms.map((one) => ({ scenario: one.scenario, options: readOptions(one.scenario.options, one.given, size) })),
  }
}

function everyForm(scenarios: readonly Scenario[], given: GivenOptions): { scenario: Scenario; given: GivenOptions }[] {
  for (const name of given.keys()) throw new Refusal(`"${ALL}" takes --json and --quick only, not --${name}`)
  return scenarios.flatMap((scenario) => scenario.variants.map((variant) => ({ scenario, given: variant })))
}

function unknown(name: string, scenarios: readonly Scenario[]): Refusal {
  const known = [...scenarios.map((scenario) => scenario.name), ALL]
  return new Refusal(`unknown scenario "${name}"${didYouMean(name, known)} (known: ${known.join(', ')})`)
}

/** Names apart from options. Whether a word belongs to the option before it is told by the type of that option. */
function sorted(words: readonly string[], scenarios: readonly Scenario[]) {
  const flags = flagsOf(scenarios)
  const names: string[] = []
  const given = new Map<string, string | undefined>()
  for (let at = 0; at < words.length; at++) {
    const match = /^--?([^=]+)(?:=(.*))?$/s.exec(words[at]!)
    if (match === null) {
      names.push(words[at]!)
      continue
    }
    const name = match[1]!
    const next = words[at + 1]
    const takesNext = match[2] === undefined && !flags.has(name) && next !== undefined && !next.startsWith('-')
    if (takesNext) at += 1
    given.set(name, takesNext ? next : match[2])
  }
  return { names, given }
}

/** Options without a value. One that is unknown may have one: it is refused later, by its name. */
function flagsOf(scenarios: readonly Scenario[]): Set<string> {
  const own = scenarios.flatMap(({ options }) =>
    Object.entries(options).flatMap(([key, option]) => (option.type === 'flag' ? [shownOption(key, option)] : [])),
  )
  return new Set([...own, ...Object.keys(COMMON), '--h'].map((name) => name.slice(2)))
}

function shownNames(scenarios: readonly Scenario[]): string {
  return [...scenarios.map(({ name }) => name), ALL].join(', ')
}

export function helpOf(scenarios: readonly Scenario[]): string {
  const all = { name: ALL, summary: 'all of them in all their forms; with --quick in a minute, else in half an hour' }
  const rows = [...scenarios, all].map(({ name, summary }) => [name, summary] as const)
  return [
    'npm run bench -- <scenario> [options]',
    '',
    ...aligned(rows),
    '',
    ...aligned(Object.entries(COMMON)),
    '',
    'The server is one that is started for it, with durable commits; LEASEHOLD_BENCH_URL names another.',
  ].join('\n')
}

function helpOfOne({ name, summary, options }: Scenario): string {
  const rows = Object.entries(options).map(([key, option]) => {
    const standard = 'default' in option && option.default !== undefined ? ` (${shownDefault(option.default)})` : ''
    return [shownOption(key, option), `${option.doc}${standard}`] as const
  })
  const lines = [`npm run bench -- ${name} [options]`, '', summary, '']
  return [...lines, ...aligned([...rows, ...Object.entries(COMMON)])].join('\n')
}

function shownDefault(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en') : value
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
