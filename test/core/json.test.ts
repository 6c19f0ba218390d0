/** Values as they are stored: what is kept, what is refused, and how the refusal reads. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { createContext, runInContext } from 'node:vm'
import fc from 'fast-check'
import { QueueError } from '../../src/core/errors.js'
import { encodeJson, JSON_DEPTH_MAX, PAYLOAD, PROGRESS, payloadHash, RESULT } from '../../src/core/json.js'

function refusal(value: unknown, use = PAYLOAD): QueueError {
  try {
    encodeJson(value, use)
  } catch (error) {
    assert(error instanceof QueueError)
    return error
  }
  assert.fail('it was accepted')
}

const kept = (value: unknown): unknown => JSON.parse(encodeJson(value, PAYLOAD))

test('plain JSON is kept as it is', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => assert.equal(encodeJson(value, PAYLOAD), JSON.stringify(value))))
})

test('B106: empty values are kept, and none is null', () => {
  for (const value of [null, 0, '', false, [], {}]) assert.deepEqual(kept(value), value)
  assert.equal(kept(undefined), null)
})

test('B103: what is not plain JSON is refused by path and fix', () => {
  class Money {
    amount = 5
  }
  const cases: [unknown, RegExp, string][] = [
    [{ n: 5n }, /payload\.n is a BigInt.*String\(value\)/, 'payload.n'],
    [{ at: new Date(0) }, /payload\.at is a Date.*toISOString/, 'payload.at'],
    [[1, undefined], /payload\[1\] is undefined in an array/, 'payload[1]'],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    [{ list: [1, , 2] }, /payload\.list\[1\] is undefined in an array/, 'payload.list[1]'],
    [{ n: Number.NaN }, /payload\.n is NaN/, 'payload.n'],
    [{ n: -Infinity }, /payload\.n is -Infinity/, 'payload.n'],
    [{ a: { 'b c': new Map() } }, /payload\.a\["b c"\] is a Map.*Object\.fromEntries/, 'payload.a["b c"]'],
    [new Set([1]), /payload is a Set.*\[\.\.\.set\]/, 'payload'],
    [{ file: Buffer.from('x') }, /payload\.file is a Buffer.*base64/, 'payload.file'],
    [{ bytes: new Uint8Array(3) }, /payload\.bytes is an Uint8Array|payload\.bytes is a Uint8Array/, 'payload.bytes'],
    [{ price: new Money() }, /payload\.price is a Money/, 'payload.price'],
    [{ run: () => 5 }, /payload\.run is a function/, 'payload.run'],
    [{ s: Symbol('s') }, /payload\.s is a symbol/, 'payload.s'],
    [{ e: new Error('x') }, /payload\.e is an Error.*message/, 'payload.e'],
    [{ u: new URL('http://x') }, /payload\.u is an? URL.*href/, 'payload.u'],
    [{ o: { toJSON: () => 5 } }, /payload\.o is an Object.*toJSON/, 'payload.o'],
    [Promise.resolve(5), /payload is a Promise/, 'payload'],
    [new (class List extends Array {})(), /payload is a List/, 'payload'],
    [Object.assign(Object.create({ inherited: 1 }), { a: 1 }), /payload is an Object/, 'payload'],
  ]
  for (const [value, message, field] of cases) {
    const error = refusal(value)
    assert.equal(error.code, 'INVALID_PAYLOAD')
    assert.match(error.message, message)
    assert.equal(error.field, field)
  }
})

test('B103: a property that is undefined is left out, and -0 becomes 0', () => {
  assert.equal(encodeJson({ a: undefined, b: -0 }, PAYLOAD), '{"b":0}')
})

test('B103: code of the value that throws is told with its cause', () => {
  const broken = new Error('broken')
  const getter = Object.defineProperty({}, 'x', {
    enumerable: true,
    get: () => {
      throw broken
    },
  })
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  assert.equal(refusal(getter).cause, broken)
  assert.equal(refusal({ proxy }).code, 'INVALID_PAYLOAD')
})

test('cycles and bottomless nesting are refused, shared objects are not', () => {
  const cycle: { list: unknown[] } = { list: [] }
  cycle.list.push({ back: cycle })
  assert.match(refusal(cycle).message, /payload\.list\[0\]\.back refers to an object that it is inside of/)
  const wide: unknown[] = Array.from({ length: 2_000_000 }, () => 1)
  wide.unshift(wide)
  assert.match(refusal(wide).message, /payload\[0\] refers to/)
  let deep: unknown = 1
  for (let level = 0; level < JSON_DEPTH_MAX; level++) deep = [deep]
  assert.doesNotThrow(() => encodeJson(deep, PAYLOAD))
  assert.match(refusal([deep]).message, /nested over 256 levels/)
  const shared = { a: 1 }
  assert.deepEqual(kept([shared, shared]), [shared, shared])
})

test('objects that share themselves into more than memory holds are refused at once', () => {
  let bomb: unknown = 'x'
  for (let level = 0; level < 60; level++) bomb = [bomb, bomb]
  assert.equal(refusal(bomb).code, 'PAYLOAD_TOO_LARGE')
})

test('B104: prototype keys are kept as own keys and reach no prototype', () => {
  const text = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"x","prototype":2}'
  const value = JSON.parse(text)
  assert.equal(encodeJson(value, PAYLOAD), text)
  const back = kept(value) as object
  assert(Object.hasOwn(back, '__proto__'))
  assert.equal(({} as { polluted?: number }).polluted, undefined)
})

test('B100: NUL and lone surrogates are kept, escaped', () => {
  const value = { 'a\0': 'b\0', lone: '\ud800', pair: '😀' }
  assert.deepEqual(kept(value), value)
  assert.match(encodeJson(value, PAYLOAD), /^[^\0\ud800]*$/u)
})

test('plain objects of another realm and without a prototype are plain', () => {
  const foreign = runInContext('({ a: [1, { b: 2 }] })', createContext({}))
  assert.equal(encodeJson(foreign, PAYLOAD), '{"a":[1,{"b":2}]}')
  assert.equal(refusal(runInContext('({ at: new Date(0) })', createContext({}))).field, 'payload.at')
  assert.equal(encodeJson(Object.assign(Object.create(null), { a: 1 }), PAYLOAD), '{"a":1}')
})

test('a key "toJSON" that is data is data', () => {
  assert.equal(encodeJson({ toJSON: 1 }, PAYLOAD), '{"toJSON":1}')
})

test('B109: the limit is counted in bytes of UTF-8, to the byte', () => {
  const limits = [
    [PAYLOAD, 1_048_576, 'PAYLOAD_TOO_LARGE'],
    [RESULT, 65_536, 'INVALID_RESULT'],
    [PROGRESS, 4_096, 'INVALID_PROGRESS'],
  ] as const
  for (const [use, limit, code] of limits) {
    for (const letter of ['x', 'é', '€']) {
      const bytes = Buffer.byteLength(letter)
      const fits = letter.repeat(Math.floor((limit - 2) / bytes)) + 'x'.repeat((limit - 2) % bytes)
      assert.equal(Buffer.byteLength(encodeJson(fits, use)), limit)
      const error = refusal(`${fits}x`, use)
      assert.equal(error.code, code)
      const numbers = new RegExp(`${(limit + 1).toLocaleString('en')} bytes.*at most ${limit.toLocaleString('en')}`)
      assert.match(error.message, numbers)
    }
  }
})

test('B109: 300 MB are refused without being copied', () => {
  const huge = Buffer.alloc(300_000_000, 'x').toString('latin1')
  const parts = { a: Array.from({ length: 300 }, () => 'x'.repeat(1_000_000)) }
  const before = process.resourceUsage().maxRSS
  assert.match(refusal(huge).message, /at least 300,000,002 bytes/)
  assert.match(refusal(parts).message, /at least 6\d,\d{3},\d{3} bytes/)
  const grownKb = process.resourceUsage().maxRSS - before
  assert(grownKb < 200_000, `the process grew by ${grownKb} KB`)
})

test('one hash for payloads that mean the same, another for others and for other kinds', () => {
  const hash = payloadHash('kind', '{"a":1,"b":[1,{"c":2,"d":3}]}')
  assert.equal(payloadHash('kind', '{"b":[1,{"d":3,"c":2}],"a":1}'), hash)
  assert.notEqual(payloadHash('other', '{"a":1,"b":[1,{"c":2,"d":3}]}'), hash)
  assert.notEqual(payloadHash('kind', '{"a":1,"b":[{"c":2,"d":3},1]}'), hash)
  assert.equal(payloadHash('kind', 'null').length, 43)
})
