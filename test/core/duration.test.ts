import { strict as assert } from 'node:assert'
import { test } from 'node:test'
import fc from 'fast-check'
import { DURATION_MS_MAX, durationMs, formatDuration } from '../../src/core/duration.js'
import { QueueError } from '../../src/core/errors.js'

test('numbers are milliseconds, texts have a unit', () => {
  const known: [number | string, number][] = [
    [0, 0],
    [500, 500],
    [1.4, 1],
    ['250ms', 250],
    ['20s', 20_000],
    ['15m', 900_000],
    ['1.5h', 5_400_000],
    ['30d', 2_592_000_000],
    [' 2 h ', 7_200_000],
    ['0s', 0],
    ['0.0004s', 0],
  ]
  for (const [value, ms] of known) assert.equal(durationMs(value, 'delay'), ms, String(value))
})

test('anything else is refused, and the message names the field and the value', () => {
  const wrong: unknown[] = [
    -1,
    Number.NaN,
    Infinity,
    '',
    '5',
    '5 minutes',
    '-5s',
    '1h30m',
    '1e3s',
    '٣s',
    '5S',
    null,
    undefined,
    {},
    [],
    true,
    5n,
  ]
  for (const value of wrong)
    assert.throws(
      () => durationMs(value as number, 'retry.delay'),
      (error: unknown) =>
        error instanceof QueueError &&
        error.code === 'INVALID_OPTION' &&
        error.field === 'retry.delay' &&
        error.message.startsWith('retry.delay: '),
      String(value),
    )
})

test('the longest duration still fits a safe integer as microseconds', () => {
  assert.equal(durationMs(DURATION_MS_MAX, 'delay'), DURATION_MS_MAX)
  assert(Number.isSafeInteger(DURATION_MS_MAX * 1_000))
  assert.throws(() => durationMs(DURATION_MS_MAX + 1, 'delay'), QueueError)
  assert.throws(() => durationMs('9999999999999999999d', 'delay'), QueueError)
})

test('durations for people', () => {
  const known: [number, string][] = [
    [0, '0ms'],
    [850, '850ms'],
    [1_000, '1s'],
    [9_940, '9.9s'],
    [12_300, '12s'],
    [59_400, '59s'],
    [250_000, '4m 10s'],
    [60_000, '1m'],
    [11_100_000, '3h 5m'],
    [187_200_000, '2d 4h'],
    [400 * 86_400_000, '400d'],
  ]
  for (const [ms, text] of known) assert.equal(formatDuration(ms), text)
})

test('no duration is shown as sixty of its unit', () => {
  const near = fc.tuple(
    fc.constantFrom(1_000, 10_000, 60_000, 3_600_000, 86_400_000),
    fc.integer({ min: -6_000, max: 0 }),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        near.map(([unit, tenths]) => unit + tenths / 10),
        fc.nat(1e10),
      ),
      (ms) => {
        const text = formatDuration(ms)
        assert.match(text, /^\d+(\.\d)?(ms|s|m|h|d)( \d+(s|m|h))?$/)
        assert.doesNotMatch(text, /(^|\s)(60s|60m|24h|1000ms)/, `${ms} ms`)
      },
    ),
  )
})
