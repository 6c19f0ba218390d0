/**
 * In what a schema differs from what this version has made of it: changed by hand, restored in part, or added to. Pure.
 * Called by migrate.ts.
 */
import type { Difference } from '../storage.js'
import type { Catalog, Facts, FoundFunction } from './catalog.js'
import { type SchemaName, withSchema } from './schema-name.js'

export interface Expected {
  facts: Facts
  /** The text of all functions. */
  functions: string
}

/** `newer`: the schema is of a later version, whose additions and functions are its own affair. */
export function differences(
  found: Catalog,
  expected: Expected,
  schema: SchemaName,
  age: 'same' | 'newer',
): Difference[] {
  const functions = functionsIn(expected.functions, schema)
  const all = [...factDifferences(found.facts, expected.facts), ...functionDifferences(found.functions, functions)]
  if (age === 'same') return all
  return all.filter(({ kind, about }) => kind === 'missing' || (kind === 'changed' && !about.startsWith('function')))
}

function factDifferences(found: Facts, expected: Facts): Difference[] {
  const missing = Object.keys(expected).filter((name) => found[name] === undefined)
  const gone = new Set(missing)
  return [
    // Of what is gone as a whole the parts need not be told.
    ...missing
      .filter((name) => !gone.has(`table ${ownerOf(name, expected)}`) && !gone.has(`view ${ownerOf(name, expected)}`))
      .map((name) => difference('missing', name, `is missing (${expected[name]})`)),
    ...Object.entries(expected)
      .filter(([name, said]) => found[name] !== undefined && found[name] !== said)
      .map(([name, said]) => difference('changed', name, `is "${found[name]}", and should be "${said}"`)),
    ...Object.keys(found)
      .filter((name) => expected[name] === undefined && expected[`table ${ownerOf(name, found)}`] !== undefined)
      .map((name) => difference('extra', name, `is not of this version (${found[name]})`)),
    ...Object.keys(found)
      .filter((name) => expected[name] === undefined && /^(table|view|sequence) /.test(name))
      .map((name) => difference('extra', name, 'is not of this version')),
  ]
}

/** The table or view that a column, an index, a constraint or a trigger belongs to. */
function ownerOf(name: string, facts: Facts): string | undefined {
  if (name.startsWith('index ')) return / on (\S+) \(/.exec(facts[name]!)?.[1]
  return /^(?:column|constraint|trigger|rule|policy) ([^.]+)\./.exec(name)?.[1]
}

function functionDifferences(found: readonly FoundFunction[], expected: readonly FoundFunction[]): Difference[] {
  const named = (of: readonly FoundFunction[]) => new Map(of.map((each) => [functionName(each), each]))
  const [have, want] = [named(found), named(expected)]
  return [
    ...[...want.keys()].filter((name) => !have.has(name)).map((name) => difference('missing', name, 'is missing')),
    ...[...want].flatMap(([name, each]) => changesOf(name, have.get(name) ?? each, each)),
    ...[...have.keys()]
      .filter((name) => !want.has(name))
      .map((name) => difference('extra', name, 'is not of this version')),
  ]
}

function changesOf(name: string, found: FoundFunction, expected: FoundFunction): Difference[] {
  const said: string[] = []
  if (found.body !== expected.body) said.push('has another text than this version gives it')
  if (found.definer !== expected.definer)
    said.push(
      `runs with the rights of its ${found.definer ? 'owner, and should with those of its caller' : 'caller, and should with those of its owner'}`,
    )
  const settings = (of: FoundFunction): string => of.settings.map(plain).sort().join('; ')
  if (settings(found) !== settings(expected))
    said.push(`runs with the settings "${settings(found)}", and should with "${settings(expected)}"`)
  return said.map((each) => difference('changed', name, each))
}

function difference(kind: Difference['kind'], about: string, said: string): Difference {
  return { kind, about, sentence: `${about} ${said}` }
}

function functionName(found: FoundFunction): string {
  return `function ${found.name} of ${found.arguments} arguments`
}

/** What the text would make, found in it without a server. */
export function functionsIn(text: string, schema: SchemaName): FoundFunction[] {
  const pattern = /^create or replace function :schema\.(\w+)\(([^)]*)\)((?:(?!\$\$)[\s\S])*)\$\$([\s\S]*?)\$\$/gm
  return [...text.matchAll(pattern)].map(([, name, list, attributes, body]) => ({
    name: name!,
    arguments: list!.trim() === '' ? 0 : list!.split(',').length,
    body: withSchema(body!, schema),
    definer: /\bsecurity definer\b/.test(attributes!),
    settings: [...attributes!.matchAll(/\bset (\w+) = ((?:'[^']*'|\w+)(?:, \w+)*)/g)].map(
      ([, key, value]) => `${key}=${value}`,
    ),
  }))
}

function plain(setting: string): string {
  return setting.replaceAll(/['"]/g, '').replaceAll(', ', ',')
}
