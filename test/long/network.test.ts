/** What a network does to a worker and a producer: connections cut, refused, half open, slow. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect, defineJob, type Queue, type QueueEvent, type Worker, worker } from '../../src/index.js'
import { pause } from '../process/worker-child.js'
import { Children } from '../support/children.js'
import { type Scratch, scratch } from '../support/postgres.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'

let store: Scratch
let proxy: TcpProxy
beforeEach(async () => {
  store = await scratch()
  proxy = await TcpProxy.to(store.url)
})
afterEach(async () => {
  await proxy.close()
  await store.drop()
})

const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })

async function within<T>(ms: number, what: () => string, work: Promise<T>): Promise<void> {
  const late = Symbol()
  const first = await Promise.race([work, sleep(ms, late, { ref: false })])
  assert.notEqual(first, late, `${what()} did not settle within ${ms} ms`)
}

/** The process of network-child.ts, and all that it says. */
class Child {
  readonly told: string[] = []
  stderr = ''
  private constructor(readonly process: ChildProcess) {
    process.on('message', (message) => this.told.push(String(message)))
    process.stderr!.on('data', (chunk) => {
      this.stderr += String(chunk)
    })
  }

  static async up(url: string, role: string): Promise<Child> {
    const path = fileURLToPath(new URL('../process/network-child.js', import.meta.url))
    const forked = fork(path, [url, store.schema, role], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    const child = new Child(forked)
    await until(`the ${role} is up`, () => child.told.includes('up') || forked.exitCode !== null)
    assert.equal(forked.exitCode, null, child.stderr)
    return child
  }

  async ran(): Promise<number> {
    const answer = once(this.process, 'message')
    this.process.send('ran')
    return Number(String(((await answer) as [string])[0]).split(' ')[1])
  }

  kill(): void {
    this.process.kill('SIGKILL')
  }
}

for (const how of ['the network cuts', 'the server ends'] as const)
  test(`B30: ${how} all connections ten times, idle, busy and listening: the process stays and works on`, async () => {
    const name = `load_${store.schema}`
    const child = await Child.up(
      proxy.urlFor((url) => url.searchParams.set('application_name', name)),
      'load',
    )
    try {
      for (let n = 0; n < 10; n++) {
        const before = await child.ran()
        if (how === 'the network cuts') proxy.cut()
        else
          await store.sql('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])
        await until(`it works after loss ${n + 1}: ${child.stderr}`, async () => (await child.ran()) > before + 20)
      }
      assert.equal(child.process.exitCode, null)
      assert.equal(child.stderr, '')
      assert.deepEqual(
        child.told.filter((line) => line.startsWith('warning')),
        [],
      )
    } finally {
      child.kill()
    }
  })

for (const role of ['worker', 'producer'] as const)
  test(`B23: a ${role} ends by itself after stop() and close(), also when the network swallows everything`, async () => {
    const child = await Child.up(proxy.url, role)
    proxy.swallow = true
    const exited = once(child.process, 'exit')
    child.process.send('stop')
    try {
      await within(10_000, () => `the end of the process (it said: ${child.told})`, exited)
      assert.equal(child.process.exitCode, 0, child.stderr)
    } finally {
      child.kill()
    }
  })

for (const how of ['refuses', 'swallows'] as const)
  test(`B23: a worker whose store was never reached, as the network ${how} it, stops in time and ends`, async () => {
    if (how === 'refuses') await proxy.refuse()
    else proxy.swallow = true
    const child = await Child.up(proxy.url, 'unreached')
    const exited = once(child.process, 'exit')
    await sleep(300)
    child.process.send('stop')
    try {
      // The grace is 200 ms and stop() has a second more, close() as much; the rest is for a busy machine. A connection
      // that is coming up would hold the process for five.
      const told = (what: string): Promise<void> => until(what, () => child.told.includes(what))
      await within(4_000, () => `stop() (it said: ${child.told})`, told('stopped'))
      await told('closed')
      await within(3_000, () => `the end of the process (it said: ${child.told})`, exited)
      assert.equal(child.process.exitCode, 0, child.stderr)
    } finally {
      child.kill()
    }
  })

/** A queue and a worker that reach the store by the proxy, with all that they tell. */
async function opened(
  options: { worker?: object; connect?: object } = {},
): Promise<{ queue: Queue; running: Worker; ran: number[]; events: QueueEvent[]; end(): Promise<void> }> {
  const events: QueueEvent[] = []
  const ran: number[] = []
  const log = (event: QueueEvent): void => void events.push(event)
  const queue = await connect(proxy.url, { schema: store.schema, log, ...options.connect })
  const running = worker(queue, [kind.handle(({ n }) => void ran.push(n))], { signals: false, ...options.worker })
  const end = async (): Promise<void> => {
    await running.stop({ grace: '200ms' })
    await queue.close()
  }
  return { queue, running, ran, events, end }
}

test('B34: connect() to a store that is down rejects, and may be called again', async () => {
  await proxy.refuse()
  await assert.rejects(connect(proxy.url, { schema: store.schema }), { code: 'STORE_UNAVAILABLE' })
  await proxy.accept()
  proxy.swallow = true
  const began = performance.now()
  await assert.rejects(connect(proxy.url, { schema: store.schema }), { code: 'STORE_UNAVAILABLE' })
  assert.ok(performance.now() - began < 15_000)
  proxy.swallow = false
  const queue = await connect(proxy.url, { schema: store.schema })
  await queue.enqueue(kind, { n: 1 })
  await queue.close()
})

test('B34: run() waits for a store that is down at its start, says so, and comes up by itself', async () => {
  const { queue, running, ran, events, end } = await opened()
  await proxy.refuse()
  const ended = running.run()
  await until('it tells that the store is away', () => events.some(({ type }) => type === 'store.unavailable'))
  assert.deepEqual(running.health().why.slice(0, 1), ['unregistered'])
  await assert.rejects(queue.enqueue(kind, { n: 0 }), { code: 'STORE_UNAVAILABLE' })
  await proxy.accept()
  const direct = await connect(store.url, { schema: store.schema })
  const job = await direct.enqueue(kind, { n: 1 })
  await job.result({ timeout: '30s' })
  await until('it is well', () => running.health().status === 'ok')
  assert.deepEqual(ran, [1])
  await direct.close()
  await end()
  await ended
})

for (const how of ['refused', 'half open'] as const)
  test(`B31: after an outage of many polls and leases (${how}) work goes on by itself`, async () => {
    const children = new Children({ url: proxy.url, schema: store.schema })
    const queue = await connect(store.url, { schema: store.schema })
    try {
      const child = await children.start({ lease: '1s', beat: '250ms', poll: '200ms' })
      await (await queue.enqueue(pause, { name: 'before', ms: 1 })).result({ timeout: '20s' })
      if (how === 'refused') await proxy.refuse()
      else proxy.swallow = true
      const job = await queue.enqueue(pause, { name: 'after', ms: 1 })
      await sleep(8_000)
      const { status, why } = await children.health(child)
      assert.deepEqual([status, why.slice(0, 1)], ['degraded', ['leases doubtful']])
      if (how === 'refused') await proxy.accept()
      else proxy.swallow = false
      await job.result({ timeout: '40s' })
      await until('it is well', async () => (await children.health(child)).status === 'ok')
      assert.equal(children.lines('end after').length, 1)
      assert.deepEqual(children.lines('warning'), [])
    } finally {
      await children.end()
      await queue.close()
    }
  })

test('a worker whose connections are half open is taken over, knows it by itself, and comes back as another', async () => {
  const away = new Children({ url: proxy.url, schema: store.schema })
  const here = new Children(store)
  const queue = await connect(store.url, { schema: store.schema })
  const quick = { lease: '1s', beat: '250ms', poll: '200ms' }
  try {
    await away.start(quick)
    const job = await queue.enqueue(pause, { name: 'moved', ms: 60_000 })
    await away.until('start moved 1', 1)
    await here.start(quick)
    proxy.swallow = true
    await here.until('start moved', 1)
    await away.until('event {"type":"worker.leases lost"', 1)
    proxy.swallow = false
    await away.until('event {"type":"worker.written off"', 1)
    assert.deepEqual(away.lines('end moved'), [])
    await queue.cancel(job.id)
  } finally {
    await away.end()
    await here.end()
    await queue.close()
  }
})

test('health() looks at the claim loop: it tells that no claim is answered while beats and all else get through', async () => {
  const { queue, running, events, end } = await opened({ worker: { poll: '500ms' }, connect: { storeTimeout: '8s' } })
  await running.start()
  await until('it is well', () => running.health().status === 'ok')
  proxy.mute = /lh_claim/
  await until('it is degraded', () => running.health().status === 'degraded')
  const { why, lastBeatAgoMs, noClaimAnsweredForMs, failing } = running.health()
  assert.deepEqual([why, failing], [['no claim answered'], []])
  assert.ok(lastBeatAgoMs! < 10_000 && noClaimAnsweredForMs > 3_000)
  assert.ok(!events.some(({ type }) => type === 'store.unavailable'))
  proxy.mute = undefined
  const job = await queue.enqueue(kind, { n: 1 })
  await job.result({ timeout: '30s' })
  await until('it is well again', () => running.health().status === 'ok')
  await end()
})

test('health() does not take a worker that is busy with long jobs for one whose claims are not answered', async () => {
  const { queue, running, end } = await opened({ worker: { poll: '100ms', concurrency: 2 } })
  const gate = new AbortController()
  const slow = defineJob('slow', { queue: 'slow' })
  const handler = slow.handle(() => sleep(60_000, undefined, { signal: gate.signal }).catch(() => {}))
  const busy = worker(queue, [handler], { signals: false, poll: '100ms', concurrency: 2 })
  await busy.start()
  await queue.enqueueMany(Array.from({ length: 4 }, () => slow.with()))
  await until('all slots are busy', () => busy.health().running === 2)
  // Longer than an idle worker may be silent.
  for (let n = 0; n < 45; n++) {
    await sleep(100)
    assert.deepEqual(busy.health().why, [])
  }
  assert.ok(busy.health().lastClaimAgoMs! > 3_500)
  gate.abort()
  await busy.stop({ grace: '200ms' })
  await running.stop()
  await end()
})

test('a slow network: every job runs once, no lease is lost, and no connection is given up', async () => {
  const { queue, running, ran, events, end } = await opened()
  await running.start()
  await until('it is registered', () => running.health().status === 'ok')
  const before = proxy.open
  proxy.delayMs = 300
  const jobs = Array.from({ length: 200 }, (_, n) => kind.with({ n }))
  const results = await queue.enqueueMany(jobs)
  assert.ok(results.every(({ status }) => status === 'created'))
  await until('all have run', () => ran.length >= 200)
  await until('all are settled', async () => (await queue.counts('queue')).completed.count === 200)
  assert.equal(new Set(ran).size, 200)
  assert.equal(ran.length, 200)
  const bad = ['store.unavailable', 'worker.leases lost', 'worker.written off', 'job.lost']
  assert.deepEqual(
    events.filter(({ type }) => bad.includes(type)),
    [],
  )
  assert.ok(proxy.open >= before)
  proxy.delayMs = 0
  await end()
})

/** Every ERROR as a server with lc_messages = 'de_DE' says it; the field V keeps the English word. */
function german(chunk: Buffer): Buffer {
  const parts: Buffer[] = []
  let at = 0
  while (at + 5 <= chunk.length) {
    const end = at + 1 + chunk.readInt32BE(at + 1)
    if (chunk[at] === 0x45 && end <= chunk.length) {
      const fields = chunk
        .subarray(at + 5, end)
        .toString('latin1')
        .replace(/^SERROR\0/, 'SFEHLER\0')
      const body = Buffer.from(fields, 'latin1')
      const head = Buffer.alloc(5)
      head[0] = 0x45
      head.writeInt32BE(body.length + 4, 1)
      parts.push(head, body)
    } else parts.push(chunk.subarray(at, end))
    at = end
  }
  parts.push(chunk.subarray(at))
  return Buffer.concat(parts)
}

test('a server that speaks another language (lc_messages): a day without a table is made, settlements go on', async () => {
  await proxy.close()
  proxy = await TcpProxy.to(store.url, { rewrite: german })
  const { queue, running, end } = await opened({ worker: { upkeep: false } })
  const job = await queue.enqueue(kind, { n: 1 })
  // As on a day that nobody made ahead.
  const days = await store.sql(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname ~ '^ended_[0-9]{8}$'`,
    [store.schema],
  )
  for (const { name } of days) await store.sql(`drop table :s.${name}`)
  await running.start()
  await job.result({ timeout: '6s' })
  await end()
})
