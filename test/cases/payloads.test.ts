/** Faults that other queues were reported to have (docs/cases.md): payloads, results and errors, on every store. */
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import type { HandlerContext } from '../../src/core/handler.js'
import { ERROR_BYTES_MAX, HISTORY_ENTRIES_MAX, type Json, PAYLOAD_BYTES_MAX } from '../../src/core/job.js'
import { defineJob, type EnqueueOptions, type JobView, type Queue } from '../../src/index.js'
import { openMemory } from '../../src/storage/memory/index.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { parsed, run } from '../cli/command.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { handler, Kit } from '../worker/kit.js'
import { ended, kitOn, queueOn } from './kit.js'

interface Stage {
  kit: Kit
  queue: Queue
  /** Where the store is a server. */
  server: Scratch | undefined
}

/** The case on each store that there is. */
function onEach(name: string, play: (stage: Stage) => Promise<void>): void {
  test(`${name} (memory)`, async () => {
    const kit = kitOn(openMemory())
    await play({ kit, queue: queueOn(kit), server: undefined })
  })
  test(`${name} (PostgreSQL)`, async () => {
    const server = await scratch()
    try {
      const kit = kitOn(server.storage)
      await play({ kit, queue: queueOn(kit), server })
    } finally {
      await server.drop()
    }
  })
}

type Run = (payload: Json, context: HandlerContext) => unknown

/** What becomes of one job for each of the payloads. */
async function outcomes({ kit, queue }: Stage, runs: readonly Run[], options: EnqueueOptions = {}): Promise<JobView[]> {
  const kind = defineJob<number>('kind', { queue: 'queue' })
  const ids: string[] = []
  for (const n of runs.keys()) ids.push((await queue.enqueue(kind, n, options)).id)
  const running = kit.worker([handler((n, context) => runs[n as number]!(n as Json, context))])
  await running.start()
  const views = await ended(queue, ids)
  await running.stop()
  return views
}

const LAST = { retry: { attempts: 1 } } as const

/** Errors that hold what no store can keep. */
function heavyErrors(): Error[] {
  const having = (more: object): Error => Object.assign(new Error('the original'), more)
  const cycle = having({})
  Object.assign(cycle, { self: cycle })
  const getter = having({})
  for (const key of ['code', 'response'])
    Object.defineProperty(getter, key, {
      enumerable: true,
      get: () => {
        throw new Error('a getter threw')
      },
    })
  let chain = new Error('the end of the chain')
  for (let level = 0; level < 19; level++) chain = new Error(`level ${level}`, { cause: chain })
  return [
    cycle,
    having({ socket: new Socket(), request: { socket: new Socket() } }),
    getter,
    having({ retry: () => 5, big: 5n, mark: Symbol('mark') }),
    new Proxy(new Error('the original'), { ownKeys: () => assert.fail('a trap ran') }),
    new AggregateError([new Error('inner one'), cycle, 5n], 'the original'),
    new Error('the original', { cause: chain }),
  ]
}

onEach(
  'B98: an error that holds what cannot be kept fails its job by the rule, and its own words are kept',
  async (stage) => {
    const errors = heavyErrors()
    const views = await outcomes(
      stage,
      errors.map((error) => () => {
        throw error
      }),
      LAST,
    )
    for (const [n, view] of views.entries()) {
      assert.deepEqual([view.state, view.reason], ['dead', 'failed'])
      const { error } = view.history!.entries[0]!
      assert.deepEqual([error!.name, error!.message], [errors[n]!.name, 'the original'])
      assert.match(error!.stack!, /the original\n {4}at /)
    }
    assert.match(views.at(-2)!.history!.entries[0]!.error!.stack!, /Error 1: Error: inner one/)
    // Of twenty causes some are told, and that there are more.
    assert.match(views.at(-1)!.history!.entries[0]!.error!.stack!, /Caused by: Error: level 18[\s\S]*left out|cut:/)
    assert.equal(stage.kit.all('job.dead').length, errors.length)
  },
)

const NUL = 'a\0b'

onEach(
  'B100: NUL in errors, results, payloads, progress and log has one outcome each, and every job its right end',
  async (stage) => {
    const { kit, queue } = stage
    const named = new Error(NUL)
    named.name = `Name${NUL}`
    named.stack = `${named.name}: ${NUL}\n    at ${NUL}`
    const runs: Run[] = [
      () => Promise.reject(named),
      () => Promise.reject(NUL),
      () => ({ [NUL]: NUL }),
      (_, { progress }) => progress({ [NUL]: NUL }),
      (_, { log }) => log(NUL, { [NUL]: NUL }),
    ]
    const views = await outcomes(stage, runs, LAST)
    assert.deepEqual(
      views.map(({ state }) => state),
      ['dead', 'dead', 'completed', 'completed', 'completed'],
    )
    // In texts for people it becomes the replacement character; values come back as they were.
    for (const view of views.slice(0, 2)) assert.equal(view.history!.entries[0]!.error!.message, 'a\uFFFDb')
    assert.doesNotMatch(JSON.stringify(views[0]!.history), /\\u0000/)
    assert.deepEqual(views[2]!.result, { [NUL]: NUL })
    assert.deepEqual(views[3]!.history!.progress, { [NUL]: NUL })
    assert.deepEqual(kit.all('job.log')[0]!.fields, { [NUL]: NUL })
    const kind = defineJob<unknown>('kind', { queue: 'other' })
    const payload = { [NUL]: [NUL] }
    assert.deepEqual((await (await queue.enqueue(kind, payload)).get())!.payload, payload)
    // What is a name or a key is text for every store, and there it is refused.
    for (const [options, field] of [
      [{ idempotencyKey: NUL }, 'idempotencyKey'],
      [{ queue: NUL }, 'queue'],
    ] as const)
      await assert.rejects(queue.enqueue(kind, 1, options), { field })
  },
)

class Money {
  amount = 5
}
const NO_JSON: [unknown, string][] = [
  [{ n: 5n }, 'payload.n'],
  [{ at: new Date(0) }, 'payload.at'],
  [[1, undefined], 'payload[1]'],
  [{ n: Number.NaN }, 'payload.n'],
  [{ map: new Map() }, 'payload.map'],
  [[new Set()], 'payload[0]'],
  [{ file: Buffer.from('x') }, 'payload.file'],
  [{ price: new Money() }, 'payload.price'],
  [
    {
      broken: {
        toJSON: () => {
          throw new Error('no')
        },
      },
    },
    'payload.broken',
  ],
]

onEach(
  'B103: what is not plain JSON is refused by its path, and nothing is written; the rest changes by one rule',
  async ({ queue }) => {
    const kind = defineJob<unknown>('kind', { queue: 'queue' })
    for (const [payload, field] of NO_JSON) {
      await assert.rejects(queue.enqueue(kind, payload), { code: 'INVALID_PAYLOAD', field })
      const [result] = await queue.enqueueMany([kind.with(payload)])
      assert.deepEqual([result!.status, 'error' in result! && result.error.field], ['refused', field])
    }
    assert.deepEqual(await queue.queues(), [])
    const job = await queue.enqueue(kind, { a: undefined, b: -0, c: [-0] })
    const { payload } = (await job.get())!
    assert.deepEqual(payload, { b: 0, c: [0] })
  },
)

const PROTOTYPE_KEYS =
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":2,"toString":"x"}'

onEach(
  'B104: prototype keys in payload, result, progress and options reach no prototype, and data comes back',
  async (stage) => {
    const { queue } = stage
    const odd = JSON.parse(PROTOTYPE_KEYS) as Json
    const clean = JSON.stringify(Object.getOwnPropertyNames(Object.prototype).toSorted())
    const [returned, progressed] = await outcomes(stage, [() => odd, (_, { progress }) => progress(odd)])
    assert.equal(JSON.stringify(returned!.result), PROTOTYPE_KEYS)
    assert.equal(JSON.stringify(progressed!.history!.progress), PROTOTYPE_KEYS)
    const kind = defineJob<Json>('kind', { queue: 'other' })
    const view = (await (await queue.enqueue(kind, odd)).get())!
    assert.equal(JSON.stringify(view.payload), PROTOTYPE_KEYS)
    assert.ok(Object.hasOwn(view.payload as object, '__proto__'))
    for (const text of [
      '{"__proto__":{"priority":15}}',
      '{"constructor":{"delay":5}}',
      '{"retry":{"__proto__":{"attempts":9}}}',
    ])
      await assert.rejects(queue.enqueue(kind, 1, JSON.parse(text)), { code: 'UNKNOWN_OPTION' })
    const inherited = Object.create({ priority: 15, delay: '1h' }) as EnqueueOptions
    const plain = (await (await queue.enqueue(kind, 1, inherited)).get())!
    assert.deepEqual([plain.priority, plain.state], [4, 'ready'])
    assert.equal(JSON.stringify(Object.getOwnPropertyNames(Object.prototype).toSorted()), clean)
    assert.equal(({} as { polluted?: number }).polluted, undefined)
  },
)

const EMPTY: (Json | undefined)[] = [undefined, null, 0, '', false, []]

onEach(
  'B106: empty payloads and results come back as they were, from the API, in events and on the command line',
  async (stage) => {
    const { kit, queue, server } = stage
    const kind = defineJob<Json | undefined, Json | undefined>('kind', { queue: 'queue' })
    const got: unknown[] = []
    const running = kit.worker(
      [
        kind.handle((payload) => {
          got.push(payload)
          return EMPTY[got.length - 1]
        }),
      ],
      { concurrency: 1 },
    )
    await running.start()
    const ids: string[] = []
    for (const value of EMPTY) {
      const job = value === undefined ? await queue.enqueue(kind) : await queue.enqueue(kind, value)
      assert.deepEqual(await job.result({ timeout: '60s' }), value)
      ids.push(job.id)
    }
    await running.stop()
    // No payload is null, for the handler as for everybody who looks.
    const payloads = EMPTY.map((value) => value ?? null)
    assert.deepEqual(got, payloads)
    const views = await Promise.all(ids.map((id) => queue.get(id)))
    assert.deepEqual(
      views.map((view) => view!.payload),
      payloads,
    )
    assert.deepEqual(
      views.map((view) => view!.result),
      EMPTY,
    )
    assert.equal(kit.all('job.completed').length, EMPTY.length)
    if (server) await shownEmpty(server, ids, payloads)
  },
)

async function shownEmpty({ url, schema }: Scratch, ids: string[], payloads: Json[]): Promise<void> {
  const env = { LEASEHOLD_URL: url, LEASEHOLD_SCHEMA: schema }
  const { stdout, stderr } = await run(['jobs', 'list', '--state', 'completed', '--json'], { env })
  const { jobs } = parsed<{ jobs: { id: string; payload: Json; result?: Json }[] }>(stdout, stderr)
  for (const [n, id] of ids.entries()) {
    const shown = jobs.find((job) => job.id === id)!
    assert.deepEqual([shown.payload, shown.result], [payloads[n], EMPTY[n]])
  }
}

function bare(more: PropertyDescriptorMap): Error {
  return Object.defineProperties(new Error('x'), more)
}
const NO_ERRORS: unknown[] = [
  undefined,
  null,
  '',
  'a text',
  0,
  {},
  { status: 500 },
  bare({ message: { value: undefined } }),
  bare({ stack: { value: undefined } }),
  bare({ message: { value: undefined }, stack: { value: undefined } }),
]

onEach(
  'B107: whatever a handler rejects with, the attempt failed with a text to read, is tried again, and the worker goes on',
  async (stage) => {
    const tries = NO_ERRORS.map((thrown): Run => {
      let first = true
      return () => {
        if (!first) return 'done'
        first = false
        return Promise.reject(thrown)
      }
    })
    const views = await outcomes(stage, tries, { retry: { backoff: { base: '10ms' } } })
    for (const view of views) {
      assert.deepEqual([view.state, view.result, view.history!.attempts], ['completed', 'done', 2])
      const [failed] = view.history!.entries
      assert.equal(failed!.outcome, 'failed')
      assert.match(failed!.error!.message, /\w/)
      assert.match(failed!.error!.name, /\w/)
    }
    assert.equal(stage.kit.all('job.failed').length, NO_ERRORS.length)
  },
)

/** The newest entries, each of at most so many bytes of text; half of it is room for quotes and names. */
const HISTORY_BYTES_MAX = HISTORY_ENTRIES_MAX * ERROR_BYTES_MAX * 1.5

function megabyteError(): Error {
  const error = new Error('m'.repeat(400_000))
  error.stack = `Error: ${error.message}\n${'    at frame (file.js:1:1)\n'.repeat(24_000)}`
  return error
}

test('B108: a job that fails 3,000 times with a megabyte stays as small as after twenty times', async () => {
  const time = new VirtualTime()
  const kit = new Kit(time, openMemory({ env: time }))
  const backoff = { type: 'fixed', baseMs: 1_000, jitter: 0 } as const
  const [id] = await kit.enqueue(1, { spec: { attempts: 3_000, backoff } })
  const error = megabyteError()
  const sizes: number[] = []
  const failing = handler(async (_, { attempt }) => {
    if (attempt % 100 === 21) sizes.push(JSON.stringify((await kit.view(id!)).history).length)
    throw error
  })
  const running = kit.worker([failing], { poll: '10m' })
  await running.start()
  await time.runUntil(kit.next('job.dead'))
  await time.runUntil(running.stop())
  const { history } = await kit.view(id!)
  assert.deepEqual([history!.attempts, history!.entries.length], [3_000, HISTORY_ENTRIES_MAX])
  assert.match(history!.entries[0]!.error!.message, /\[cut: 400,000 characters\]$/)
  assert.equal(sizes.length, 30)
  assert.ok(Math.max(...sizes) <= HISTORY_BYTES_MAX, `${Math.max(...sizes)} bytes`)
  // What is written for each failure does not grow either: only the digits of counts and times differ.
  assert.ok(Math.abs(sizes.at(-1)! - sizes[0]!) < 500, `${sizes}`)
})

test('B108: on a real store a failure writes no more the fiftieth time than the twentieth', async () => {
  const store = await scratch()
  try {
    const kit = kitOn(store.storage)
    const backoff = { type: 'fixed', baseMs: 0, jitter: 0 } as const
    const [id] = await kit.enqueue(1, { spec: { attempts: 50, backoff } })
    const error = megabyteError()
    const written: number[] = []
    const running = kit.worker([
      handler(async (_, { attempt }) => {
        const [row] = await store.sql('select octet_length(j.history::text) as n from :s.lease l, unnest(l.jobs) j')
        written[attempt] = row!.n as number
        throw error
      }),
    ])
    await running.start()
    await kit.next('job.dead')
    await running.stop()
    const [dead] = await store.sql('select octet_length(history::text) as n from :s.dead where id = $1', [id])
    assert.ok((dead!.n as number) <= HISTORY_BYTES_MAX, `${dead!.n} bytes`)
    assert.ok(Math.abs((dead!.n as number) - written[HISTORY_ENTRIES_MAX + 1]!) < 500)
  } finally {
    await store.drop()
  }
})

/** Text whose JSON has so many bytes of UTF-8: letters of three bytes, and some of one. */
function textOf(bytes: number): string {
  const room = bytes - 2
  return '€'.repeat(Math.floor(room / 3)) + 'x'.repeat(room % 3)
}

const HUGE = 'x'.repeat(300_000_000)

onEach(
  'B109: a payload works up to the limit, to the byte; above it the error tells limit and size',
  async ({ kit, queue }) => {
    const kind = defineJob<string, number>('kind', { queue: 'queue' })
    const running = kit.worker([kind.handle((text) => Buffer.byteLength(text))])
    await running.start()
    for (const bytes of [PAYLOAD_BYTES_MAX - 1, PAYLOAD_BYTES_MAX]) {
      const text = textOf(bytes)
      const job = await queue.enqueue(kind, text)
      assert.equal(await job.result({ timeout: '60s' }), bytes - 2)
      assert.equal((await job.get())!.payload, text)
    }
    await running.stop()
    const above = textOf(PAYLOAD_BYTES_MAX + 1)
    const message = /1,048,577 bytes.*at most 1,048,576/
    await assert.rejects(queue.enqueue(kind, above), { code: 'PAYLOAD_TOO_LARGE', message })
    const [result] = await queue.enqueueMany([kind.with(above)])
    assert.ok(result?.status === 'refused')
    assert.equal(result.error.code, 'PAYLOAD_TOO_LARGE')
    await assert.rejects(queue.enqueue(kind, HUGE), { code: 'PAYLOAD_TOO_LARGE', message: /300,000,002 bytes/ })
    assert.equal((await queue.counts('queue')).ready.count, 0)
  },
)
