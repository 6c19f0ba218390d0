/** Failures that differ only in what varies have one fingerprint; others have another one. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { describeFailure } from '../../src/core/failure.js'
import { fingerprintOf, templateOf } from '../../src/core/fingerprint.js'

function printOf(message: string, more: { name?: string; code?: string } = {}): string {
  return fingerprintOf({ name: 'Error', message, ...more })
}

/** What drivers, clients and runtimes say. `□` stands for what varies. */
const MESSAGES = [
  'user □ was not found',
  'order □: no such product □',
  'insert failed for key (id)=(□)',
  'the balance of account □ is below □ EUR',
  'Timeout of □ ms exceeded',
  'connect ECONNREFUSED □',
  'connect ETIMEDOUT □',
  'getaddrinfo ENOTFOUND smtp.example.com',
  'Unexpected token < in JSON at position □',
  'Request failed with status code 404',
  'Request failed with status code 503',
  'the upstream answered HTTP 503 for □',
  'the upstream answered HTTP/1.1 429 for □',
  "Cannot read properties of undefined (reading 'id')",
  "Cannot read properties of undefined (reading 'amount')",
  "Cannot read properties of null (reading 'id')",
  'duplicate key value violates unique constraint "users_email_key"',
  'duplicate key value violates unique constraint "orders_number_key"',
  'relation "app.users" does not exist',
  'canceling statement due to lock timeout',
  "can't reach the printer, won't try again",
  'token expired at □',
  'ids □ are locked',
]

const FILLERS: Record<string, fc.Arbitrary<string>> = {
  number: fc.integer().map(String),
  fraction: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  uuid: fc.uuid(),
  hex: fc.stringMatching(/^[0-9a-f]{12,64}$/),
  'id with a prefix': fc.stringMatching(/^(cus|pi|evt)_[A-Za-z]{3,9}[0-9][A-Za-z0-9]{3,9}$/),
  'a word in quotes': fc.stringMatching(/^[a-zäöü]{1,20}$/).map((text) => `"${text}"`),
  'double quotes': fc.stringMatching(/^[A-Za-zäöü' ,.!-]{0,40}$/).map((text) => `"${text} …"`),
  'single quotes': fc.stringMatching(/^[A-Za-zäöü" ,.!]{0,40}$/).map((text) => `'${text.replaceAll('"', '')} …'`),
  'e-mail': fc.stringMatching(/^[a-z]{1,9}(\.[a-z]{1,9})?@[a-z]{1,9}\.(com|co\.uk|org)$/),
  'ISO time': fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toISOString()),
  time: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toUTCString()),
  'IP address': fc.oneof(fc.ipV4(), fc.ipV6()).filter((address) => /\d/.test(address)),
  list: fc.array(fc.nat(), { minLength: 1, maxLength: 9 }).map((numbers) => numbers.join(', ')),
}

for (const [what, filler] of Object.entries(FILLERS))
  test(`one fingerprint whatever stands in its place: ${what}`, () => {
    const varying = MESSAGES.filter((message) => message.includes('□'))
    fc.assert(
      fc.property(fc.constantFrom(...varying), fc.infiniteStream(filler), (message, values) => {
        const filled = message.replaceAll('□', () => values.next().value as string)
        assert.equal(printOf(filled), printOf(message.replaceAll('□', '17')), filled)
      }),
      { numRuns: 300 },
    )
  })

test('different errors have different fingerprints', () => {
  const prints = new Map(MESSAGES.map((message) => [printOf(message.replaceAll('□', '17')), message]))
  assert.equal(prints.size, MESSAGES.length)
})

test('words make the difference, white space does not', () => {
  const words = fc.array(fc.stringMatching(/^[g-z]{1,9}$/), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(words, words, fc.constantFrom(' ', '\n  ', '\t', '  '), (one, other, space) => {
      assert.equal(printOf(one.join(space)), printOf(` ${one.join(' ')}\n`))
      if (one.join(' ') !== other.join(' ')) assert.notEqual(printOf(one.join(' ')), printOf(other.join(' ')))
    }),
  )
})

test('name and code make the difference', () => {
  const prints = [
    printOf('it broke'),
    printOf('it broke', { name: 'TypeError' }),
    printOf('it broke', { code: '23505' }),
    printOf('it broke', { code: '23503' }),
    printOf('it broke 23505'),
  ]
  assert.equal(new Set(prints).size, prints.length)
})

test('a failed fetch is known by its cause', () => {
  const failed = (code: string): string => {
    const cause = Object.assign(new Error(`connect ${code} 10.0.0.1:443`), { code })
    return fingerprintOf(describeFailure(new TypeError('fetch failed', { cause })))
  }
  assert.equal(failed('ECONNREFUSED'), failed('ECONNREFUSED'))
  assert.notEqual(failed('ECONNREFUSED'), failed('ENOTFOUND'))
})

test('URLs: what they ask for is kept; who asks, ids and queries are not', () => {
  const same = [
    'GET https://api.example.com/users/17/orders?page=2 failed',
    'GET https://ada:secret@api.example.com/users/18/orders#top failed',
    'GET https://api.example.com/users/0198f1f2-7a53-7c3e-9f2e-2d2f5d2b7c11/orders?token=abc failed',
  ]
  assert.equal(new Set(same.map((message) => printOf(message))).size, 1)
  assert.doesNotMatch(templateOf(same[1]!), /ada|secret/)
  assert.notEqual(printOf(same[0]!), printOf(same[0]!.replace('orders', 'invoices')))
  assert.notEqual(printOf(same[0]!), printOf(same[0]!.replace('api.example.com', 'mail.example.com')))
})

test('whatever the text: twelve hex digits, the same each time, from a template that is bounded', () => {
  const odd = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 5_000 }),
    fc.constantFrom('"', "'", '`', '\ud800', '\0', '://', '@', '*', '-', ':').map((text) => text.repeat(4_000)),
  )
  fc.assert(
    fc.property(odd, odd, (name, message) => {
      const print = fingerprintOf({ name, message })
      assert.match(print, /^[0-9a-f]{12}$/)
      assert.equal(fingerprintOf({ name, message }), print)
      assert(templateOf(message).length <= 300)
    }),
  )
})

test('a message that was cut in the middle of a quotation is the same failure', () => {
  const quoting = (length: number): string => `invalid document "${'abc def '.repeat(length)}"`
  assert.equal(printOf(quoting(3)), printOf(quoting(3_000)))
})

test('prints are kept for a month: what they are made of does not change by accident', () => {
  assert.equal(printOf('user 17 was not found'), '946302604064')
  assert.equal(printOf('it broke', { name: 'TypeError', code: 'ERR_X' }), '5e344c720516')
})
