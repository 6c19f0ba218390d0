/** Answers of operations on jobs that move at the same moment: they may be late, they may not be wrong. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { Settlement } from '../../src/storage/storage.js'
import { held, someoneWaits } from '../support/held.js'
import { newJob, TestWorker } from '../support/jobs.js'
import { type Scratch, scratch } from '../support/postgres.js'

let store: Scratch
beforeEach(async () => {
  store = await scratch()
})
afterEach(() => store.drop())

const HISTORY = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }

/** Two jobs in one lease. */
async function running(): Promise<{ ids: string[]; fence: number }> {
  const jobs = [newJob(), newJob()]
  await store.storage.enqueue(jobs)
  const { leases } = await (await TestWorker.registered(store.storage)).claim({ limit: 2 })
  assert.equal(leases.length, 1)
  return { ids: leases[0]!.jobs.map(({ id }) => id), fence: leases[0]!.fence }
}

/** Just before the control operation looks at what it did not move, `settlement` is stored. */
function before(settlement: Settlement): void {
  const { inspect, storage } = { inspect: store.storage.inspect, storage: store.storage }
  const get = inspect.get.bind(inspect)
  inspect.get = async (ids) => {
    await storage.settle([settlement])
    return get(ids)
  }
}

test('cancel that meets a settlement: a job that fails into its retry is not `unknown`', async () => {
  const { ids, fence } = await running()
  const settling = await held(
    store,
    `select :s.settle(array[$1::bigint], array[0], array[2], array[false], array[3600000000::bigint], array[1::bigint], array[1::bigint],
      array[null::text], array['{"attempts":1,"crashes":0,"crashesAlone":0,"snoozes":0,"redrives":0,"entries":[]}'::json], array[null::json])`,
    [fence],
  )
  const cancelling = store.storage.control.cancel([ids[0]!])
  await someoneWaits(store)
  await settling.commit()
  assert.deepEqual(await cancelling, ['cancelled'])
})

test('retry that meets a settlement: a job that fails into its retry has not `ended`', async () => {
  const { ids, fence } = await running()
  before({ fence, ordinal: 0, to: 'delayed', delayMs: 3_600_000, suspect: false, history: HISTORY })
  const [answer] = await store.storage.control.retry([ids[0]!])
  assert.notEqual(answer, 'ended')
})

test('redrive that meets a settlement: a job that dies of its failure does not need force', async () => {
  const { ids, fence } = await running()
  before({ fence, ordinal: 0, to: 'dead', reason: 'failed', history: HISTORY })
  const [answer] = await store.storage.control.redrive([ids[0]!], { force: false })
  assert.notEqual(answer, 'needs force')
})
