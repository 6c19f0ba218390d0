/** How figures are shown: a line of JSON, or aligned lines with units for people. Pure. Called by main.ts. */
import type { Figures } from './figures.js'

/** Endings of keys, the unit each stands for, longest first. */
const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ['MsPerSecond', 'ms/s'],
  ['JobsPerSecond', 'jobs/s'],
  ['PerSecond', '/s'],
  ['Seconds', 's'],
  ['Bytes', 'B'],
  ['Ms', 'ms'],
  ['Us', 'µs'],
  ['Mb', 'MB'],
]
const INDENT = 2

export function jsonLine(figures: Figures, conditions: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ ...figures, conditions })
}

/** The first line says what most look for; the others follow with their labels and units. */
export function shown(figures: Figures): string {
  const { scenario, jobs, jobsPerSecond, p50Ms, p95Ms, p99Ms, ...more } = figures
  const head = [
    scenario,
    jobs === undefined ? undefined : `${number(jobs)} jobs`,
    jobsPerSecond === undefined ? undefined : `${number(jobsPerSecond)} jobs/s`,
    ...Object.entries({ p50: p50Ms, p95: p95Ms, p99: p99Ms }).map(([name, ms]) =>
      ms === undefined ? undefined : `${name} ${number(ms)} ms`,
    ),
  ]
  const lines = rows(more, INDENT)
  const width = Math.max(0, ...lines.map(({ label }) => label.length))
  return [
    head.filter((part) => part !== undefined).join('   '),
    ...lines.map(({ label, value }) => `${label.padEnd(width)}  ${value}`.trimEnd()),
  ].join('\n')
}

interface Row {
  label: string
  value: string
}

function rows(figures: Readonly<Record<string, unknown>>, indent: number): Row[] {
  return Object.entries(figures).flatMap(([key, value]) => {
    const margin = ' '.repeat(indent)
    if (isRecord(value)) return [{ label: `${margin}${words(key)}`, value: '' }, ...rows(value, indent + INDENT)]
    const { name, unit } = labelOf(key)
    return value === undefined ? [] : [{ label: `${margin}${name}`, value: withUnit(value, unit) }]
  })
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `boundJobsPerSecond` is "bound", in jobs/s. */
export function labelOf(key: string): { name: string; unit: string } {
  const found = UNITS.find(([ending]) => key.endsWith(ending) && key.length > ending.length)
  const stem = found === undefined ? key : key.slice(0, -found[0].length)
  return { name: words(stem), unit: found?.[1] ?? '' }
}

function words(key: string): string {
  return key.replace(/(?<!^)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function withUnit(value: unknown, unit: string): string {
  if (value === null) return 'not known here'
  const text = Array.isArray(value) ? value.map(plain).join('  ') : plain(value)
  return unit === '' ? text : `${text} ${unit}`
}

function plain(value: unknown): string {
  return typeof value === 'number' ? number(value) : typeof value === 'string' ? value : JSON.stringify(value)
}

function number(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: Math.abs(value) >= 1_000 ? 21 : 4 })
}

/** What the figures hold for, once before them. */
export function shownConditions(conditions: Readonly<Record<string, unknown>>): string {
  const lines = rows(conditions, INDENT)
  const width = Math.max(...lines.map(({ label }) => label.length))
  return ['conditions', ...lines.map(({ label, value }) => `${label.padEnd(width)}  ${value}`)].join('\n')
}
