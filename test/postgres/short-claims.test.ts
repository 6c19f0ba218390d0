/** Claims that bring less than they asked for, and what they say of the rest. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Claim } from '../../src/storage/storage.js'
import { someoneWaits } from '../support/held.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
before(async () => {
  store = await scratch()
})
after(() => store.drop())

function sizeOf({ leases }: Claim): number {
  return leases.reduce((sum, { jobs }) => sum + jobs.length, 0)
}

test('one whose upper lane was emptied between the quotas and the taking says that the lower one has more', async () => {
  const queue = 'levels'
  const [late, quick] = [await TestWorker.registered(store.storage), await TestWorker.registered(store.open())]
  await store.storage.enqueue(Array.from({ length: 10 }, () => newJob({ queue, priority: 8 })))
  await store.storage.enqueue(Array.from({ length: 1_000 }, () => newJob({ queue })))
  const claim = (worker: TestWorker, limit: number) => worker.claim({ limit, queues: [{ queue, share: limit }] })
  // The point between the two, made to wait.
  const gate = await store.client()
  await gate.query('select pg_advisory_lock(4711)')
  await store.sql('alter function :s.quotas rename to quotas_of_old')
  await store.sql(`create function :s.quotas(p_lanes int[], p_cursors bigint[], p_limit int, p_kinds text[], p_ordering text,
    p_level_us bigint, p_turn bigint, p_pattern int[]) returns table (lane int, quota int) language plpgsql as $$
    begin
      return query select * from :s.quotas_of_old(p_lanes, p_cursors, p_limit, p_kinds, p_ordering, p_level_us, p_turn, p_pattern);
      if p_limit = 100 then perform pg_advisory_lock(4711); perform pg_advisory_unlock(4711); end if;
    end $$`)
  const first = claim(late, 100)
  await someoneWaits(store)
  assert.equal(sizeOf(await claim(quick, 10)), 10)
  await gate.query('select pg_advisory_unlock(4711)')
  const got = await first
  assert.equal(sizeOf(got), 90)
  assert.equal(got.more, true)
})

test('one of several queues keeps to the bytes of one claim, and says that there is more', async () => {
  const names = ['large-1', 'large-2', 'large-3', 'large-4']
  const payload = JSON.stringify('x'.repeat(200_000))
  for (const queue of names) await store.storage.enqueue(Array.from({ length: 50 }, () => newJob({ queue, payload })))
  const worker = await TestWorker.registered(store.storage)
  const claim = await worker.claim({ limit: 400, queues: names.map((queue) => ({ queue, share: 100 })) })
  const bytes = sizeOf(claim) * payload.length
  assert.ok(bytes > 4_000_000 && bytes <= 8_388_608 + payload.length, `${bytes} bytes`)
  assert.equal(claim.more, true)
})
