/** What a scenario is: a name, a line about it, its options, and a run that hands in figures one after another. */
import type { Figures } from './figures.js'
import type { BenchOptions, GivenOptions, Read } from './options.js'
import type { Setting } from './setting.js'

export interface Scenario {
  readonly name: string
  readonly summary: string
  readonly options: BenchOptions
  /** The forms in which `all` runs it, as words of the command line; once without options where it says nothing. */
  readonly variants: readonly GivenOptions[]
  run(setting: Setting, options: Readonly<Record<string, unknown>>): AsyncIterable<Figures>
}

/** Ties the options of the table to those that `run` gets. */
export function scenario<const Options extends BenchOptions>(parts: {
  name: string
  summary: string
  options: Options
  variants?: readonly Readonly<Record<string, string | undefined>>[]
  run(setting: Setting, options: Read<Options>): AsyncIterable<Figures>
}): Scenario {
  const variants = (parts.variants ?? [{}]).map((variant) => new Map(Object.entries(variant)))
  return { ...parts, variants, run: (setting, options) => parts.run(setting, options as Read<Options>) }
}
