/** Whatever is thrown: it is described, bounded, and describing it never throws. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { describeFailure } from '../../src/core/failure.js'
import { ERROR_BYTES_MAX, type ErrorRecord } from '../../src/core/job.js'

function bytesOf(record: ErrorRecord): number {
  return Object.values<string>({ ...record }).reduce((sum, part) => sum + Buffer.byteLength(part), 0)
}

function checked(thrown: unknown): ErrorRecord {
  const record = describeFailure(thrown)
  assert(bytesOf(record) <= ERROR_BYTES_MAX, `${bytesOf(record)} bytes`)
  assert(record.message.length > 0)
  for (const part of Object.values(record)) {
    assert.equal(typeof part, 'string')
    assert(!part.includes('\0'))
    assert.equal(Buffer.from(part).toString(), part, 'well-formed')
  }
  assert.deepEqual(JSON.parse(JSON.stringify(record)), record)
  return record
}

test('an error keeps its name, message and stack', () => {
  const error = new TypeError('no such user')
  const record = checked(error)
  assert.equal(record.name, 'TypeError')
  assert.equal(record.message, 'no such user')
  assert.match(record.stack!, /^TypeError: no such user\n {4}at .*failure\.test/)
})

test('B98: errors that hold what JSON cannot are described by their own words', () => {
  const error = new Error('original') as Error & Record<string, unknown>
  error.self = error
  error.big = 5n
  error.symbol = Symbol('s')
  error.run = () => 5
  error.proxy = new Proxy({}, { get: () => assert.fail('a trap ran') })
  Object.defineProperty(error, 'code', {
    get: () => {
      throw new Error('a getter ran')
    },
  })
  assert.equal(checked(error).message, 'original')
})

test('B98: proxies, revoked ones, and getters that throw', () => {
  const { proxy, revoke } = Proxy.revocable(new Error('x'), {})
  revoke()
  checked(proxy)
  checked(
    new Proxy(new Error('x'), {
      get: () => {
        throw new Error('trap')
      },
      getPrototypeOf: () => {
        throw new Error('trap')
      },
      ownKeys: () => {
        throw new Error('trap')
      },
    }),
  )
  const error = new Error('x')
  for (const key of ['stack', 'message', 'name', 'cause', 'errors'])
    Object.defineProperty(error, key, {
      get: () => {
        throw new Error('getter')
      },
    })
  checked(error)
  assert.equal(checked(new Proxy(new RangeError('behind a proxy'), {})).message, 'behind a proxy')
})

test('B98: an AggregateError tells its errors, also one without a message', () => {
  const inner = [new Error('first'), new TypeError('second'), 'third', null]
  const record = checked(new AggregateError(inner, 'all failed'))
  assert.equal(record.message, 'all failed')
  assert.match(record.stack!, /Error 1: Error: first[\s\S]*Error 2: TypeError: second[\s\S]*Error 3: NotAnError: third/)
  const refusedConnection = Object.assign(new AggregateError([new Error('connect ECONNREFUSED ::1:5432')]), {
    code: 'ECONNREFUSED',
  })
  assert.equal(checked(refusedConnection).message, 'ECONNREFUSED')
  assert.match(
    checked(
      new AggregateError(
        Array.from({ length: 1_000 }, (_, i) => new Error(`e${i}`)),
        'm',
      ),
    ).stack!,
    /995 errors more/,
  )
})

test('B98: causes are told to a depth, and a cycle of causes ends', () => {
  let error = new Error('level 20')
  for (let level = 19; level >= 0; level--) error = new Error(`level ${level}`, { cause: error })
  const { message, stack } = checked(error)
  assert.equal(message, 'level 0')
  assert.match(stack!, /Caused by: Error: level 1\n/)
  const a: Error = new Error('a')
  const b = new Error('b', { cause: a })
  a.cause = b
  a.stack = 'Error: a\n    at here'
  b.stack = 'Error: b\n    at there'
  assert.equal(
    checked(a).stack,
    'Error: a\n    at here\nCaused by: Error: b\n    at there\nCaused by: an error above (a cycle)',
  )
  assert.match(checked(new Error('x', { cause: 'a text' })).stack!, /Caused by: NotAnError: a text/)
})

test('B100: NUL becomes U+FFFD, in message, name and stack', () => {
  const error = new Error('a\0b')
  error.name = 'N\0'
  const record = checked(error)
  assert.equal(record.message, 'a\uFFFDb')
  assert.equal(record.name, 'N\uFFFD')
  checked(new Error('lone \ud800 surrogate'))
})

test('B107: what is no error is told in words', () => {
  const said = (thrown: unknown): string => checked(thrown).message
  assert.equal(said(undefined), 'thrown: undefined')
  assert.equal(said(null), 'thrown: null')
  assert.equal(said(''), 'thrown: an empty string')
  assert.equal(said('boom'), 'boom')
  assert.equal(said(0), 'thrown: 0')
  assert.equal(said(5n), 'thrown: 5n')
  assert.equal(said(Symbol('s')), 'thrown: Symbol(s)')
  assert.equal(said({}), 'thrown: {}')
  assert.equal(said({ status: 500 }), 'thrown: { status: 500 }')
  assert.match(
    said(() => 5),
    /^thrown: \[Function/,
  )
  assert.equal(said({ message: 'like an error' }), 'like an error')
  assert.equal(checked({ name: 'HttpError', message: 'bad' }).name, 'HttpError')
})

test('B107: errors that lack message or stack, or have wrong ones', () => {
  const bare = new Error('x')
  Object.defineProperty(bare, 'message', { value: undefined })
  assert.equal(checked(bare).message, '(no message)')
  const stackless = new Error('y')
  Object.defineProperty(stackless, 'stack', { value: undefined })
  assert.equal(checked(stackless).message, 'y')
  assert.equal(checked(Object.assign(new Error('z'), { stack: 5, name: {} })).name, 'Error')
  assert.equal(
    checked(Object.assign(new Error('m'), { stack: 'one line of my own' })).stack,
    'Error: m\none line of my own',
  )
})

test('B108: a megabyte is cut with a marker, and frames survive a long message', () => {
  const error = new Error('m'.repeat(1_000_000))
  const record = checked(error)
  assert.match(record.message, /^m{4000,} … \[cut: 1,000,000 characters\]$/)
  assert.match(record.stack!, / at .*failure\.test/)
  const deep = new Error('deep')
  deep.stack = `Error: deep\n${'    at frame (file.js:1:1)\n'.repeat(50_000)}`
  assert.match(checked(deep).stack!, /\[cut: [\d,]+ characters\]$/)
  checked(new Error('€'.repeat(500_000)))
  checked('€'.repeat(500_000))
})

test('B108: describing a failure costs by what is kept of it, not by its length', () => {
  /** Of this process alone, and the least of some rounds: what else the machine does is not in it. */
  const cpuOf = (length: number): number => {
    const error = new Error('m'.repeat(length))
    error.stack = `Error: ${error.message}\n${'    at frame (file.js:1:1)\n'.repeat(length / 25)}`
    describeFailure(error)
    const rounds = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage()
      let [times, used] = [0, 0]
      // The clock of CPU time goes on in steps of some milliseconds.
      while (used < 40_000) {
        for (let i = 0; i < 20; i++) describeFailure(error)
        times += 20
        used = process.cpuUsage(before).user
      }
      return used / times
    })
    return Math.min(...rounds)
  }
  const [long, short] = [cpuOf(1_000_000), cpuOf(10_000)]
  assert(long < 30 * short, `${long / short} times as much for what is a hundred times as long`)
})

test('anything at all is described within any bound', () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true }),
      fc.integer({ min: 256, max: 8_192 }),
      (thrown, max) => {
        assert(bytesOf(describeFailure(thrown, max)) <= max)
      },
    ),
  )
  const vast = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]))
  assert.match(checked(vast).message, /too many keys/)
})

test('the code of an error is kept, or that of its nearest cause', () => {
  const coded = (code: unknown, cause?: unknown): Error => Object.assign(new Error('x', { cause }), { code })
  assert.equal(checked(coded('ECONNREFUSED')).code, 'ECONNREFUSED')
  assert.equal(checked(coded(14)).code, '14')
  assert.equal(checked(new Error('outer', { cause: new Error('middle', { cause: coded('23505') }) })).code, '23505')
  assert.equal(checked(coded('OUTER', coded('INNER'))).code, 'OUTER')
  for (const none of ['', 'with a space', 'x'.repeat(65), '\0', Number.NaN, {}, null]) {
    const record = checked(coded(none))
    assert(!('code' in record), JSON.stringify(record))
  }
  const circle = new Error('x')
  circle.cause = circle
  assert(!('code' in checked(circle)))
  for (const bytesMax of [8, 40, 200, 1_000])
    assert(bytesOf(describeFailure(coded('C'.repeat(60)), bytesMax)) <= bytesMax)
})
