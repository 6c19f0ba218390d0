/**
 * The options of a scenario, declared once: type, default, size of a quick run, doc. Read from the words of the command
 * line; whatever is wrong with them is a Refusal. Pure. Used by the scenarios and command-line.ts.
 */
import { didYouMean } from '../src/core/suggest.js'

export type BenchOption =
  | { readonly type: 'whole'; readonly default?: number; readonly quick?: number; readonly doc: string }
  | { readonly type: 'flag'; readonly doc: string }
  | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string; readonly doc: string }

export type BenchOptions = Readonly<Record<string, BenchOption>>

/** What a scenario gets. A number without a default may be missing. */
export type Read<Options extends BenchOptions> = {
  readonly [Name in keyof Options]: Options[Name] extends { type: 'flag' }
    ? boolean
    : Options[Name] extends { choices: readonly (infer Choice)[] }
      ? Choice
      : Options[Name] extends { default: number }
        ? number
        : number | undefined
}

/** `quick`: so small that it only shows that it works. */
export type Size = 'full' | 'quick'

/** As the command line gives them: the name without dashes, and the word after it. */
export type GivenOptions = ReadonlyMap<string, string | undefined>

/** The words of the command line ask for something that there is not. */
export class Refusal extends Error {}

const WHOLE_MAX = 1_000_000_000
const SUFFIXES: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 }

/** Every option of the table, given or not. Throws a Refusal that names the option and what it may be. */
export function readOptions<const Options extends BenchOptions>(
  options: Options,
  given: GivenOptions,
  size: Size,
): Read<Options> {
  const names = new Map(Object.keys(options).map((key) => [flagName(key), key]))
  for (const name of given.keys())
    if (!names.has(name)) throw new Refusal(`unknown option --${name}${suggested(name, names.keys())}`)
  const read = Object.entries(options).map(([key, option]) => {
    const name = flagName(key)
    return [key, given.has(name) ? readOne(name, option, given.get(name)) : defaultOf(option, size)]
  })
  return Object.fromEntries(read) as Read<Options>
}

/** `holdSnapshot` is written `--hold-snapshot`. */
export function flagName(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** How help shows it: `--jobs N`. */
export function shownOption(key: string, option: BenchOption): string {
  const value = option.type === 'flag' ? '' : option.type === 'whole' ? ' N' : ` ${option.choices.join('|')}`
  return `--${flagName(key)}${value}`
}

function suggested(name: string, known: Iterable<string>): string {
  const all = [...known]
  const hint = didYouMean(
    `--${name}`,
    all.map((one) => `--${one}`),
  ).replaceAll('"', '')
  return hint !== '' ? hint : `; known here: ${[...all, 'json', 'quick', 'help'].map((one) => `--${one}`).join(', ')}`
}

function defaultOf(option: BenchOption, size: Size): number | string | boolean | undefined {
  if (option.type === 'flag') return false
  if (option.type === 'choice') return option.default
  return size === 'quick' ? (option.quick ?? option.default) : option.default
}

function readOne(name: string, option: BenchOption, word: string | undefined): number | string | boolean {
  if (option.type === 'flag') {
    if (word !== undefined) throw new Refusal(`--${name} takes no value, not "${word}"`)
    return true
  }
  if (option.type === 'whole') return readWhole(name, word)
  if (word !== undefined && option.choices.includes(word)) return word
  const hint = word === undefined ? '' : `, not "${word}"${didYouMean(word, option.choices)}`
  throw new Refusal(`--${name} is one of ${option.choices.join(', ')}${hint}`)
}

/** `200000`, `200_000`, `200k` or `3M`. */
function readWhole(name: string, word: string | undefined): number {
  const match = /^(\d[\d_]*)([km]?)$/i.exec(word ?? '')
  const value = match === null ? Number.NaN : Number(match[1]!.replaceAll('_', '')) * SUFFIXES[match[2]!.toLowerCase()]!
  if (Number.isSafeInteger(value) && value >= 1 && value <= WHOLE_MAX) return value
  const shown = word === undefined ? 'nothing' : `"${word}"`
  throw new Refusal(`--${name} takes a whole number from 1 (200000, 200k, 3M), not ${shown}`)
}
