/** Faults that other queues were reported to have (docs/cases.md): a cancel that is forgotten. On a real store. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { defineJob } from '../../src/index.js'
import { TestWorker } from '../support/jobs.js'
import { handler } from '../worker/kit.js'
import { judge, kitOn, places, QUICK, queueOn, settleCrashes, staged, startsReported, writtenOff } from './kit.js'

const kind = defineJob<{ n: number }>('kind', { queue: 'queue' })

test('B151: a delayed, a waiting, a retrying and a running job that were cancelled while no worker was up never start again', async (t) => {
  const { store, queue } = await staged(t)
  const [retrying, running] = [await queue.enqueue(kind, { n: 1 }), await queue.enqueue(kind, { n: 2 })]
  const doomed = await TestWorker.registered(store.storage)
  const { leases } = await doomed.claim({ apart: ['kind'] })
  const history = { attempts: 1, crashes: 0, crashesAlone: 0, snoozes: 0, redrives: 0, entries: [] }
  const lease = leases.find(({ jobs }) => jobs[0]!.id === retrying.id)!
  await store.storage.settle([{ fence: lease.fence, ordinal: 0, to: 'delayed', delayMs: 50, suspect: false, history }])
  const [delayed, waiting] = [
    await queue.enqueue(kind, { n: 3 }, { delay: '50ms' }),
    await queue.enqueue(kind, { n: 4 }),
  ]
  const ids = [delayed.id, waiting.id, retrying.id, running.id]
  assert.deepEqual(await queue.cancel(ids), ['cancelled', 'cancelled', 'cancelled', 'signalled'])
  // The worker of the running one dies without having heard of it, and everybody comes back over new connections.
  const heir = await judge(store)
  await settleCrashes(store, heir, await writtenOff(store, heir, doomed.id))
  const kit = kitOn(store.open())
  const worker = kit.worker([handler()], QUICK)
  await worker.start()
  const last = await queueOn(kit).enqueue(kind, { n: 5 }, { delay: '500ms' })
  await kit.next('job.completed')
  await worker.stop()
  assert.deepEqual(
    kit.all('job.started').map(({ jobId }) => jobId),
    [last.id],
  )
  assert.deepEqual(await places(store), { cancelled: 4, completed: 1 })
})

test('B151: a cancel is in the store: it outlives the process that asked for it, and is told to whoever runs the job', async (t) => {
  const { store } = await staged(t)
  const kit = kitOn(store.storage)
  const asking = store.open()
  const worker = kit.worker(
    [handler((_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))],
    QUICK,
  )
  await worker.start()
  const [id] = await kit.enqueue()
  await kit.next('job.started')
  await startsReported(store, 1)
  assert.deepEqual(await asking.control.cancel([id!]), ['signalled'])
  await asking.close()
  await kit.next('job.cancelled')
  await worker.stop()
  assert.deepEqual(await places(store), { cancelled: 1 })
})
