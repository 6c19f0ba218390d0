/** Durations as users write them ("15m", 500) and as the code holds them (milliseconds). Called by option checks. */
import { QueueError } from './errors.js'

/** Milliseconds as a number, or a number with a unit: `500`, `"250ms"`, `"20s"`, `"15m"`, `"1.5h"`, `"30d"`. */
export type Duration = number | string

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** About 285 years: microseconds of it still fit a safe integer, so every store can hold it. */
export const DURATION_MS_MAX = 9_000_000_000_000

/** Milliseconds of a duration. Throws INVALID_OPTION naming the field when it is not one, negative or too long. */
export function durationMs(value: Duration, field: string): number {
  const ms = typeof value === 'number' ? value : parse(value)
  if (!Number.isFinite(ms) || ms < 0 || ms > DURATION_MS_MAX)
    throw new QueueError(
      'INVALID_OPTION',
      `${field}: ${describe(value)} is not a duration; give milliseconds (500) or a number with a unit ("250ms", "20s", "15m", "1h", "30d")`,
      { field },
    )
  return Math.round(ms)
}

function parse(text: unknown): number {
  if (typeof text !== 'string') return Number.NaN
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text.trim())
  return match ? Number(match[1]) * UNIT_MS[match[2]!]! : Number.NaN
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'number' ? String(value) : `a value of type ${typeof value}`
}

/** A duration for people: `850ms`, `12.3s`, `4m 10s`, `3h 5m`, `2d 4h`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)}ms`
  const tenths = Math.round(ms / 100) / 10
  if (tenths < 10) return `${tenths}s`
  if (Math.round(ms / 1_000) < 60) return `${Math.round(ms / 1_000)}s`
  return inUnits(Math.max(ms, 60_000))
}

function inUnits(ms: number): string {
  const units: [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ]
  const first = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[first]!
  const rest = Math.floor((ms % size) / units[first + 1]![1])
  return `${Math.floor(ms / size)}${unit}${rest > 0 ? ` ${rest}${units[first + 1]![0]}` : ''}`
}
