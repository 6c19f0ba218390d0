/** What the defaults promise: recovery within 15 seconds, also before a deep backlog; patience after an outage. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbedded } from '@leasehold/embedded'
import { connect } from '../../src/index.js'
import { pause } from '../process/worker-child.js'
import { Children } from '../support/children.js'
import { scratch } from '../support/postgres.js'

const RECOVERY_MS_MAX = 15_000
const HELD = 20
const BACKLOG = 200_000

for (const backlog of [0, BACKLOG])
  test(`kill -9 with default options and ${backlog} jobs waiting: what it held runs again within 15 s`, async () => {
    const store = await scratch()
    const queue = await connect(store.url, { schema: store.schema })
    const children = new Children(store)
    try {
      const doomed = await children.start()
      await queue.enqueueMany(Array.from({ length: HELD }, (_, n) => pause.with({ name: `held-${n}`, ms: 600_000 })))
      await children.until('start held-', HELD)
      await queue.enqueueMany(Array.from({ length: backlog }, () => pause.with({ name: 'bulk', ms: 20 })))
      await children.start({ concurrency: 40 })
      // The survivor may judge others only after a lease of its own; before that it would be no fair measure.
      await steady(store)
      const killedAt = Date.now()
      await children.kill(doomed)
      await children.until('start held-', 2 * HELD)
      const recoveryMs = Date.now() - killedAt
      assert.ok(recoveryMs <= RECOVERY_MS_MAX, `recovered after ${recoveryMs} ms`)
      const [waiting] = await store.sql('select count(*)::int as n from :s.ready')
      if (backlog > 0) assert.ok((waiting!.n as number) > backlog / 2, 'the backlog was gone before the kill')
      for await (const job of queue.jobs({ state: 'running', kind: 'pause' }))
        if (String((job.payload as { name: string }).name).startsWith('held-'))
          assert.equal(job.history?.entries[0]?.outcome, 'crashed')
    } finally {
      await children.end()
      await queue.close()
      await store.drop()
    }
  })

async function steady(store: Awaited<ReturnType<typeof scratch>>): Promise<void> {
  for (;;) {
    const [row] = await store.sql('select count(*)::int as n from :s.worker where seen - steady_since >= lease_us')
    if (row!.n === 2) return
    await sleep(200)
  }
}

test('the store is down for 60 s: nobody is taken over, no attempt is lost, everything ends', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-outage-'))
  const first = await startEmbedded({ dir })
  const before = await connect(first.url)
  const children = new Children({ url: first.url, schema: 'leasehold' })
  try {
    await Promise.all([children.start(), children.start(), children.start()])
    await before.enqueueMany(Array.from({ length: 30 }, (_, n) => pause.with({ name: `outage-${n}`, ms: 25_000 })))
    await children.until('start outage-', 30)
    await before.close()
    await first.stop()
    await sleep(60_000)
    const again = await startEmbedded({ dir })
    assert.equal(again.url, first.url, 'the server came back at its address')
    const queue = await connect(again.url)
    await children.until('end outage-', 30)
    for (;;) {
      const counts = await queue.counts('process')
      if (counts.completed.count === 30) break
      await sleep(200)
    }
    assert.deepEqual(children.lines('event {"type":"worker.took over"'), [])
    assert.deepEqual(children.lines('event {"type":"worker.written off"'), [])
    for await (const job of queue.jobs({ state: 'completed' })) assert.equal(job.history?.crashes ?? 0, 0)
    await queue.close()
    await again.stop()
  } finally {
    await children.end()
    await rm(dir, { recursive: true, force: true })
  }
})
