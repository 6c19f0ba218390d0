/** Cases of `control` that names which jobs it means: what moved on since somebody found it is left as it is. */
import { strict as assert } from 'node:assert'
import type { ConformanceCase } from '../case.js'
import { HOUR_MS, type Kit } from '../kit.js'
import { rejected, type TestWorker } from '../worker.js'
import { everywhere } from './control.js'

const PROMISE = 'Operators change what they name, and nothing else.'

export const MOVED_ON: ConformanceCase[] = [
  {
    name: 'cancel: of some states only, it leaves those in others as they are',
    promise: PROMISE,
    needs: ['control', 'inspect'],
    async run(kit) {
      const { ready, delayed, retrying, running, completed, dead } = await everywhere(kit)
      const ids = [ready, delayed, retrying, running, completed, dead, kit.job().id]
      const cancel = (...states: ('ready' | 'delayed' | 'retrying' | 'running')[]): Promise<string[]> =>
        kit.control.cancel(ids, { states })
      const left = ['moved on', 'moved on', 'moved on', 'moved on', 'ended', 'ended', 'unknown']
      assert.deepEqual(await cancel(), left)
      assert.deepEqual(await cancel('retrying'), left.with(2, 'cancelled'))
      assert.deepEqual(await cancel('delayed'), left.with(1, 'cancelled').with(2, 'ended'))
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states.slice(0, 4), ['ready', 'cancelled', 'cancelled', 'running'])
      assert.notEqual((await kit.view(running)).cancelling, true)
      assert.deepEqual((await kit.view(ready)).history, null)
      assert.deepEqual((await cancel('running', 'ready')).slice(0, 4), ['cancelled', 'ended', 'ended', 'signalled'])
      assert.equal((await kit.view(running)).cancelling, true)
    },
  },
  {
    name: 'cancel: a job that was handed out since it was found waiting is not signalled',
    promise: PROMISE,
    needs: ['control', 'inspect'],
    async run(kit) {
      const worker = await kit.worker()
      const id = await kit.enqueueOne()
      const { jobs } = await kit.inspect.match({ state: 'ready', limit: 9 })
      assert.deepEqual(
        jobs.map((job) => job.id),
        [id],
      )
      const held = await worker.takeOne()
      assert.deepEqual(await kit.control.cancel([id], { states: ['ready', 'delayed', 'retrying'] }), ['moved on'])
      assert.deepEqual((await worker.beat({ leases: [held.fence] })).cancel, [])
    },
  },
  {
    name: 'retry: of some states only, it leaves those in others as they are',
    promise: PROMISE,
    needs: ['control', 'inspect'],
    async run(kit) {
      const { ready, delayed, retrying, running, completed, dead } = await everywhere(kit)
      const ids = [ready, delayed, retrying, running, completed, dead, kit.job().id]
      const before = await kit.view(delayed)
      const rest = ['running', 'ended', 'ended', 'unknown']
      assert.deepEqual(await kit.control.retry(ids, { states: [] }), ['ready', 'moved on', 'moved on', ...rest])
      assert.deepEqual(await kit.control.retry(ids, { states: ['retrying'] }), ['ready', 'moved on', 'ok', ...rest])
      assert.deepEqual(await kit.view(delayed), before)
      assert.deepEqual(await kit.control.retry(ids, { states: ['delayed'] }), ['ready', 'ok', 'ready', ...rest])
    },
  },
  {
    name: 'redrive: of letters that ended before an instant, it leaves one that died anew',
    promise: PROMISE,
    needs: ['control', 'inspect'],
    async run(kit) {
      const { old, anew, between, worker } = await lettersAround(kit)
      const running = await kit.enqueueOne()
      await worker.takeOne()
      const ids = [anew, old, running, kit.job().id]
      const only = { force: true, endedBefore: between }
      assert.deepEqual(await kit.control.redrive(ids, only), ['moved on', 'ok', 'not dead', 'unknown'])
      const [one, other] = await kit.inspect.get([anew, old])
      assert.deepEqual([one?.state, other?.state], ['dead', 'ready'])
      assert.deepEqual([one?.history?.redrives, other?.history?.redrives], [1, 1])
      assert.deepEqual(await kit.control.redrive(ids, only), ['moved on', 'not dead', 'not dead', 'unknown'])
      const late = { force: false, endedBefore: between + HOUR_MS }
      assert.deepEqual(await kit.control.redrive([anew], late), ['ok'])
    },
  },
  {
    name: 'discard: of letters that ended before an instant, it leaves one that died anew, and its key',
    promise: PROMISE,
    needs: ['control', 'inspect'],
    async run(kit) {
      const { old, anew, between } = await lettersAround(kit)
      const ids = [anew, old, kit.job().id]
      const only = { endedBefore: between }
      assert.deepEqual(await kit.control.discard(ids, only), ['moved on', 'discarded', 'unknown'])
      const states = (await kit.inspect.get(ids)).map((view) => view?.state)
      assert.deepEqual(states, ['dead', undefined, undefined])
      const again = await kit.store.enqueue([kit.job({ key: 'anew' }), kit.job({ key: 'old' })])
      assert.deepEqual(again, [{ status: 'duplicate', id: anew }, { status: 'created' }])
      assert.deepEqual(await kit.control.discard(ids, only), ['moved on', 'unknown', 'unknown'])
      assert.deepEqual(await kit.control.discard([anew], { endedBefore: between + HOUR_MS }), ['discarded'])
    },
  },
]

interface Letters {
  worker: TestWorker
  /** It ended before the instant, and so did the other one for the first time. */
  old: string
  /** It was redriven, and has ended once more since. */
  anew: string
  between: number
}

async function lettersAround(kit: Kit): Promise<Letters> {
  const worker = await kit.worker()
  const [old, anew] = await kit.enqueue({ key: 'old' }, { key: 'anew' })
  for (const held of await worker.take(2)) await worker.settle(rejected(held))
  await kit.advance(kit.marginMs + 1)
  const between = (await kit.inspect.match({ state: 'dead', limit: 1 })).nowMs
  assert.deepEqual(await kit.control.redrive([anew!], { force: false }), ['ok'])
  await kit.advance(kit.marginMs + 1)
  await worker.settle(rejected(await worker.takeOne()))
  return { worker, old: old!, anew: anew!, between }
}
