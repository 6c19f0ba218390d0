/** What may be done to a job in each of its places, and where it is stopped with the job in its hands. Used by the tables of this folder. */
import type { PostgresStorage } from '../../../src/storage/postgres/index.js'
import { completed, TestWorker } from '../../support/jobs.js'
import type { Actor } from './meeting.js'
import { EXPIRES_MS, newJudge, type Scene } from './scene.js'

const LONG_MS = 86_400_000_000

/** A worker of its own, as two that claim at once are two workers. */
async function claimed(storage: PostgresStorage, scene: Scene): Promise<string> {
  const worker = await TestWorker.registered(scene.storage)
  const { leases } = await scene.claim(storage, worker)
  return leases.length > 0 ? 'taken' : 'nothing'
}

async function cancelled(storage: PostgresStorage, { id }: Scene): Promise<string> {
  return (await storage.control.cancel([id]))[0]!
}

async function expired(storage: PostgresStorage): Promise<string> {
  return (await storage.upkeep.expire(100)).length > 0 ? 'expired' : 'nothing'
}

async function purged(storage: PostgresStorage, { job }: Scene): Promise<string> {
  const { deleted, more } = await storage.control.purge(job.queue, 100)
  return `deleted ${deleted}${more ? ', more' : ''}`
}

async function overdue({ store }: Scene): Promise<void> {
  await store.advance(2 * EXPIRES_MS)
}

export const READY: readonly Actor[] = [
  { operation: 'claim', point: 'commit:lease', act: claimed, alone: ['taken', 'running'] },
  { operation: 'cancel', point: 'commit:ready', act: cancelled, alone: ['cancelled', 'cancelled'] },
  { operation: 'expire', point: 'commit:ready', act: expired, before: overdue, alone: ['expired', 'dead'] },
  { operation: 'purge', point: 'commit:ready', act: purged, alone: ['deleted 1', 'gone'] },
]

async function promoted(storage: PostgresStorage): Promise<string> {
  return (await storage.upkeep.promote(100)).moved.length > 0 ? 'promoted' : 'nothing'
}

async function retried(storage: PostgresStorage, { id }: Scene): Promise<string> {
  return (await storage.control.retry([id]))[0]!
}

export const DELAYED: readonly Actor[] = [
  { operation: 'promote', point: 'commit:ready', act: promoted, alone: ['promoted', 'ready'] },
  { operation: 'retry', point: 'commit:ready', act: retried, alone: ['ok', 'ready'] },
  { operation: 'cancel', point: 'commit:delayed', act: cancelled, alone: ['cancelled', 'cancelled'] },
  { operation: 'expire', point: 'commit:delayed', act: expired, before: overdue, alone: ['expired', 'dead'] },
  { operation: 'purge', point: 'commit:delayed', act: purged, alone: ['deleted 1', 'gone'] },
  { operation: 'claim', point: 'commit:lease', act: claimed, alone: ['nothing', 'delayed'] },
]

async function settled(storage: PostgresStorage, { fence }: Scene): Promise<string> {
  return (await storage.settle([completed(fence)]))[0]!
}

/** The settlement rides on a claim, which takes nothing. */
async function settledByClaim(storage: PostgresStorage, scene: Scene): Promise<string> {
  const { settled: answers } = await scene.claim(storage, scene.worker, {
    kinds: ['another'],
    finished: [completed(scene.fence)],
  })
  return answers[0]!
}

/** The worker knows the claim, and names its lease no longer. */
async function forgotten(storage: PostgresStorage, scene: Scene): Promise<string> {
  return (await scene.beat(storage, { leases: [] })).status
}

async function takenOver(storage: PostgresStorage, scene: Scene): Promise<string> {
  const judge = await newJudge(scene.store)
  const { leases } = await storage.takeOver({ worker: judge.id, limit: 100 })
  return leases.length > 0 ? 'taken' : 'nothing'
}

async function silent({ store, worker }: Scene): Promise<void> {
  await store.sql('update :s.worker set seen = 1 where id = $1', [worker.id])
}

async function unregistered(storage: PostgresStorage, { worker }: Scene): Promise<string> {
  await storage.unregister(worker.id)
  return 'done'
}

export const LEASED: readonly Actor[] = [
  { operation: 'settle', point: 'commit:lease', act: settled, alone: ['ok', 'completed'] },
  { operation: 'settle with a claim', point: 'commit:lease', act: settledByClaim, alone: ['ok', 'completed'] },
  { operation: 'beat', point: 'commit:ready', act: forgotten, alone: ['ok', 'ready'] },
  { operation: 'take over', point: 'commit:lease', act: takenOver, before: silent, alone: ['taken', 'running'] },
  { operation: 'unregister', point: 'commit:ready', act: unregistered, alone: ['done', 'ready'] },
  { operation: 'cancel', point: 'commit:lease', act: cancelled, alone: ['signalled', 'running'] },
  { operation: 'claim', point: 'commit:lease', act: claimed, alone: ['nothing', 'running'] },
]

async function redriven(storage: PostgresStorage, { id }: Scene): Promise<string> {
  return (await storage.control.redrive([id], { force: false }))[0]!
}

async function discarded(storage: PostgresStorage, { id }: Scene): Promise<string> {
  return (await storage.control.discard([id]))[0]!
}

async function pruned(storage: PostgresStorage): Promise<string> {
  return `deleted ${(await storage.upkeep.prune({ completedMs: LONG_MS, deadMs: 0, limit: 100 })).deleted}`
}

export const DEAD: readonly Actor[] = [
  { operation: 'redrive', point: 'commit:ready', act: redriven, alone: ['ok', 'ready'] },
  { operation: 'discard', point: 'commit:dead', act: discarded, alone: ['discarded', 'gone'] },
  { operation: 'prune', point: 'commit:dead', act: pruned, alone: ['deleted 1', 'gone'] },
  { operation: 'cancel', point: 'commit:ready', act: cancelled, alone: ['ended', 'dead'] },
  { operation: 'claim', point: 'commit:lease', act: claimed, alone: ['nothing', 'dead'] },
]
