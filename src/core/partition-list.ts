/**
 * The list of stores that a queue is spread over, as callers write it: an object, or one line of text where only a URL has
 * room. Pure; read by connect.
 */

import {
  badRelation,
  flag,
  type Given,
  invalidOption,
  type OptionTable,
  oneOf,
  optionReader,
  required,
  text,
} from './options.js'
import { PARTITION_KEYS, type PartitionKey } from './rendezvous.js'

/** More would make each look and each change of a queue too many calls. */
export const PARTITIONS_MAX = 32

/** What a job is hashed against. In a line of text it ends at the first "=". */
function partitionName(value: unknown, field: string): string {
  const given = text(128)(value, field)
  if (!/[=,\s"]/.test(given)) return given
  throw invalidOption(field, value, 'a name without spaces, quotes, commas and "="')
}

const PARTITION = {
  /** Hashed in place of the URL, so that a store may move; host and path of the URL unless given. */
  name: { check: partitionName },
  /** The store: `postgres://user@host/database`. */
  url: { check: text(4_096) },
  /** The PostgreSQL schema of its tables; that of the connection unless given. */
  schema: { check: text(63) },
  /** Nothing new goes to it, and workers go on until it is empty. */
  draining: { default: false, check: flag },
} satisfies OptionTable

const readPartition = optionReader(PARTITION)

/** One of the stores: `{ name, url, schema, draining }`. */
export interface PartitionSketch extends Given<typeof PARTITION> {
  /** The store: `postgres://user@host/database`. */
  url: string
}

/** What `connect` takes for a queue over several stores. */
export interface PartitionOptions {
  /** The stores, by URL or as `{ name, url, schema, draining }`. */
  partitions: readonly (string | PartitionSketch)[]
  /** What jobs are kept together by: `tenant`, `kind` or `idempotency key`. */
  by: PartitionKey
}

/** As it was checked. */
export interface PartitionList {
  partitions: readonly { name: string; url: string; schema: string | undefined; draining: boolean }[]
  by: PartitionKey
}

const LIST = {
  /** The stores, by URL or as `{ name, url, schema, draining }`. */
  partitions: { check: list },
  /** What jobs are kept together by: `tenant`, `kind` or `idempotency key`; it has to be given. */
  by: { check: oneOf(PARTITION_KEYS) },
} satisfies OptionTable

const readList = optionReader(LIST)

/** Undefined for the URL of a single store. Throws INVALID_OPTION. */
export function partitionsIn(given: unknown): PartitionList | undefined {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return checked(given)
  if (typeof given !== 'string') return undefined
  const words = wordsOf(given)
  return words === undefined ? undefined : checked(fromWords(words))
}

function checked(given: object): PartitionList {
  const { partitions, by } = readList(given)
  return {
    by: required(by, 'by', `what jobs are kept together by: ${PARTITION_KEYS.join(', ')}`),
    partitions: required(partitions, 'partitions', 'the URLs of the stores'),
  }
}

function list(value: unknown, field: string): PartitionList['partitions'] {
  if (!Array.isArray(value) || value.length === 0 || value.length > PARTITIONS_MAX)
    throw badRelation(field, `give an array of 1 to ${PARTITIONS_MAX} stores, by URL or as { name, url }`)
  const all = value.map((one: unknown, index) => {
    const at = `${field}[${index}]`
    const { name: given, url, schema, draining } = readPartition(typeof one === 'string' ? { url: one } : one, `${at}.`)
    const where = required(url, `${at}.url`, 'the URL of the store')
    return { name: given ?? partitionName(nameOf(where, schema), `${at}.name`), url: where, schema, draining }
  })
  const names = all.map((one) => one.name)
  const twice = names.find((one, index) => names.indexOf(one) !== index)
  if (twice !== undefined) throw badRelation(field, `two of them have the name "${twice}"; give each a name of its own`)
  if (all.every(({ draining }) => draining))
    throw badRelation(field, 'all of them are draining; new jobs have nowhere to go')
  return all
}

/** Never user and password: names are shown, and stay when those change. */
function nameOf(url: string, schema: string | undefined): string {
  if (!URL.canParse(url)) return url.replace(/^[^:]*:/, '')
  const { protocol, host, pathname } = new URL(url)
  const place = `${host}${host === '' ? pathname : pathname.replace(/\/+$/, '')}`
  return [place === '' ? protocol.slice(0, -1) : place, ...(schema === undefined ? [] : [schema])].join('/')
}

/** `by=tenant,one=postgres://…,postgres://…#schema,draining=one`. A comma inside of a URL separates nothing. */
const WORD = /,(?=\s*(?:(?:by|draining)=|(?:[^=,\s/:?]+=)?[a-z][a-z0-9+.-]*:))/i

function wordsOf(line: string): string[] | undefined {
  const words = line.split(WORD).map((word) => word.trim())
  return words.length > 1 || /^by=/.test(line.trim()) ? words : undefined
}

function fromWords(words: readonly string[]): { by?: string; partitions: Record<string, unknown>[] } {
  const drained = new Set<string>()
  const stores: { name: string; url: string; schema?: string }[] = []
  let by: string | undefined
  for (const word of words) {
    const [, key, value] = /^([^=,\s:/?]+)=(.*)$/s.exec(word) ?? []
    if (key === 'by') by = value
    else if (key === 'draining') drained.add(value!)
    else stores.push(storeOf(value ?? word, key))
  }
  const unknown = [...drained].find((wanted) => stores.every(({ name }) => name !== wanted))
  if (unknown !== undefined) throw badRelation('draining', `none of the stores has the name "${unknown}"`)
  const partitions = stores.map((store) => ({ ...store, draining: drained.has(store.name) }))
  return { ...(by === undefined ? {} : { by }), partitions }
}

function storeOf(text: string, given: string | undefined): { name: string; url: string; schema?: string } {
  const [, url = text, schema] = /^(postgres.*)#([^#]*)$/is.exec(text) ?? []
  const name = given ?? nameOf(url, schema)
  return schema === undefined ? { name, url } : { name, url, schema }
}
