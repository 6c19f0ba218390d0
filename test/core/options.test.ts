/** Options: what is refused, and how the refusal reads. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { instant } from '../../src/core/due.js'
import { type ErrorCode, QueueError } from '../../src/core/errors.js'
import {
  between,
  duration,
  flag,
  name,
  nested,
  type OptionTable,
  oneOf,
  optionReader,
  text,
  whole,
} from '../../src/core/options.js'
import { priority } from '../../src/core/policy.js'
import { nearest } from '../../src/core/suggest.js'

const INNER = { base: { default: 2_000, check: duration() } } satisfies OptionTable
const TABLE = {
  concurrency: { default: 10, check: whole({ min: 1, max: 10_000 }) },
  timeout: { check: duration({ minMs: 1 }) },
  backoff: { check: nested(optionReader(INNER)) },
  queue: { default: 'default', check: name },
  keep: { default: 'all', check: oneOf(['all', 'none']) },
  jitter: { check: between(0, 1) },
  force: { default: false, check: flag },
  key: { check: text(10) },
} satisfies OptionTable
const read = optionReader(TABLE)

function refused(given: unknown, code: ErrorCode, field: string): QueueError {
  let found: unknown
  try {
    read(given)
  } catch (error) {
    found = error
  }
  assert(found instanceof QueueError, `${field} was accepted`)
  assert.equal(found.code, code)
  assert.equal(found.field, field)
  assert(found.message.includes(field), found.message)
  return found
}

test('what is not given is the default, and what is given is read', () => {
  assert.deepEqual(read(undefined), {
    concurrency: 10,
    timeout: undefined,
    backoff: undefined,
    queue: 'default',
    keep: 'all',
    jitter: undefined,
    force: false,
    key: undefined,
  })
  const held = read({ timeout: '1.5s', backoff: {}, queue: undefined })
  assert.equal(held.timeout, 1_500)
  assert.deepEqual(held.backoff, { base: 2_000 })
  assert.equal(held.queue, 'default')
})

test('an unknown option is refused with the nearest known one, at every level', () => {
  assert.match(refused({ concurency: 5 }, 'UNKNOWN_OPTION', 'concurency').message, /did you mean "concurrency"\?/)
  assert.match(refused({ backoff: { bsae: 5 } }, 'UNKNOWN_OPTION', 'backoff.bsae').message, /did you mean "base"\?/)
  assert.doesNotMatch(refused({ zzzzzz: 5 }, 'UNKNOWN_OPTION', 'zzzzzz').message, /did you mean/)
  assert.match(refused({ keep: 'al' }, 'INVALID_OPTION', 'keep').message, /did you mean "all"\?/)
})

test('what is no object is no options', () => {
  for (const given of [null, 5, 'x', [], true]) refused(given, 'INVALID_OPTION', 'options')
  refused({ backoff: 5 }, 'INVALID_OPTION', 'backoff')
})

test('B43: numbers that are none, infinite, fractional, negative or huge are refused by field', () => {
  const bad = [Number.NaN, Infinity, -Infinity, 1e20, 2 ** 53 + 2, 1.5, 0, -1, '5', null, 5n, {}, true]
  for (const value of bad) refused({ concurrency: value }, 'INVALID_OPTION', 'concurrency')
  for (const value of [Number.NaN, Infinity, 1e20, 2 ** 53 + 2, -1, '', 'soon', '-5s', '5 weeks', null, 5n, {}, []])
    refused({ timeout: value }, 'INVALID_OPTION', 'timeout')
  for (const value of [Number.NaN, Infinity, 1.01, -0.1, '0.5']) refused({ jitter: value }, 'INVALID_OPTION', 'jitter')
  assert(Object.is(read({ jitter: -0 }).jitter, 0))
})

test('B43: priorities are tiers or whole numbers from 0 to 15', () => {
  assert.equal(priority('high', 'priority'), 8)
  assert.equal(priority(15, 'priority'), 15)
  assert(Object.is(priority(-0, 'priority'), 0))
  for (const value of [16, -1, 1.5, Number.NaN, Infinity, 1e20, '4', 'toString', null])
    assert.throws(() => priority(value, 'priority'), { code: 'INVALID_OPTION', field: 'priority' })
  assert.throws(() => priority('hihg', 'priority'), /did you mean "high"/)
})

test('values that cannot be turned to text are refused like any other', () => {
  for (const value of [Symbol('s'), Object.create(null), () => 5, new Date(Number.NaN)]) {
    refused({ queue: value }, 'INVALID_NAME', 'queue')
    for (const field of ['concurrency', 'timeout', 'keep', 'jitter', 'force', 'key'])
      refused({ [field]: value }, 'INVALID_OPTION', field)
  }
})

test('B104: options take nothing from a prototype', () => {
  const polluted = Object.create({ concurrency: 99 })
  assert.equal(read(polluted).concurrency, 10)
  refused(JSON.parse('{"__proto__": {"concurrency": 99}}'), 'UNKNOWN_OPTION', '__proto__')
  refused(JSON.parse('{"constructor": 1}'), 'UNKNOWN_OPTION', 'constructor')
  refused(JSON.parse('{"toString": 1}'), 'UNKNOWN_OPTION', 'toString')
  assert.equal(({} as { concurrency?: number }).concurrency, undefined)
})

test('B122: a name breaks the rule or keeps it, and the refusal tells the rule', () => {
  for (const good of ['a', 'A9', '9lives', 'mail.send:v2/eu-west_1', 'x'.repeat(128)])
    assert.equal(name(good, 'queue'), good)
  for (const bad of ['', ' a', 'a b', '.a', '-a', 'a"b', "a'b", 'ä', 'a\0', 'a\n', 'x'.repeat(129), 5, null, undefined])
    assert.throws(() => name(bad, 'queue'), { code: 'INVALID_NAME', field: 'queue', message: /1 to 128 letters/ })
})

test('B85: a text is measured in bytes and has nothing that stores keep differently', () => {
  assert.equal(read({ key: 'ä'.repeat(5) }).key, 'äääää')
  assert.match(refused({ key: 'ä'.repeat(6) }, 'INVALID_OPTION', 'key').message, /12 bytes .* at most 10/)
  for (const bad of ['', 'a\0b', 'a\ud800', 5, null]) refused({ key: bad }, 'INVALID_OPTION', 'key')
})

test('B74: an instant says its zone', () => {
  const ms = Date.parse('2030-01-31T08:00:00Z')
  for (const same of [
    '2030-01-31T08:00:00Z',
    '2030-01-31T08:00Z',
    '2030-01-31T13:30:00+05:30',
    '2030-01-31T03:00:00.000-05:00',
    ms,
    new Date(ms),
  ])
    assert.equal(instant(same, 'runAt'), ms)
  for (const zoneless of ['2030-01-31T08:00:00', '2030-01-31T08:00', '2030-01-31'])
    assert.throws(() => instant(zoneless, 'runAt'), { code: 'INVALID_OPTION', field: 'runAt', message: /no time zone/ })
})

test('B43, B41: an instant is a real one', () => {
  const bad = [
    '',
    'tomorrow',
    '2030-02-30T00:00:00Z',
    '2030-13-01T00:00:00Z',
    '2030-01-01T25:00:00Z',
    '2030-01-01T00:00:00+99:00',
  ]
  for (const value of [...bad, new Date(Number.NaN), Number.NaN, Infinity, 1e20, 1.5, null, {}, true])
    assert.throws(() => instant(value, 'runAt'), { code: 'INVALID_OPTION', field: 'runAt' })
  assert.throws(() => instant(1_900_000_000, 'runAt'), /looks like seconds/)
  assert.equal(instant(new Date('0001-01-01T00:00:00Z'), 'runAt'), 0)
})

test('the nearest word is found by letters missed, doubled, wrong or swapped', () => {
  const known = ['concurrency', 'timeout', 'queue', 'keep']
  assert.equal(nearest('concurency', known), 'concurrency')
  assert.equal(nearest('tiemout', known), 'timeout')
  assert.equal(nearest('Queue', known), 'queue')
  assert.equal(nearest('kepe', known), 'keep')
  assert.equal(nearest('retry', known), undefined)
  assert.equal(nearest('x'.repeat(10_000), known), undefined)
})
