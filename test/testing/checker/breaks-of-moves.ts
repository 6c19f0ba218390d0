/** Ways to break the rules about moves, operators and the store as a whole: each breaks one rule and no other. */
import type { Break } from './breaks-of-jobs.js'
import type { Told } from './told.js'

/** Of a job that nothing else is told of. */
function crashed(told: Told, deadWorker: string, more: { started: boolean; alone: boolean }): Told {
  return told.add('worker-1', { at: 16_050, what: 'crash noted', id: 'id-10', deadWorker, ...more })
}

const MOVES: readonly Break[] = [
  {
    how: 'a completed job is claimed again',
    rule: 'what has ended stays ended',
    make: (told) => told.ran(1, 'worker-3', 400, { end: 'failed' }),
  },
  {
    how: 'a dead letter that nobody redrove is claimed again',
    rule: 'what has ended stays ended',
    make: (told) =>
      told.ran(14, 'worker-3', 280, { end: 'aborted' }).add('worker-3', {
        at: 285,
        what: 'settled',
        id: 'id-14',
        worker: 'worker-3',
        as: 'lost',
      }),
  },
  {
    how: 'a handler starts under a fence that was not claimed',
    rule: 'nothing starts unclaimed',
    make: (told) => {
      told.withoutAll((event) => event.what === 'claimed' && event.id === 'id-21')
    },
  },
  {
    how: 'a worker settles what it never held',
    rule: 'only what was held is settled',
    make: (told) => told.add('worker-3', { at: 150, what: 'settled', id: 'id-1', worker: 'worker-3', as: 'snoozed' }),
  },
  {
    how: 'a worker is told of an outcome of what it did not start',
    rule: 'only what was held is settled',
    make: (told) =>
      told
        .enqueued(10, 100)
        .claimed('worker-4', 2_000, [{ id: 'id-10' }])
        .add('worker-4', { at: 2_001, what: 'settled', id: 'id-10', worker: 'worker-4', as: 'snoozed' })
        .completed(10, 'worker-4', 2_100, { claim: 'told' }),
  },
  {
    how: 'a snooze uses an attempt up',
    rule: 'an attempt is used by a failure, or a crash after its start',
    make: (told) => {
      for (const { event } of told.events)
        if ('attempt' in event && 'id' in event && event.id === 'id-11' && event.at > 500) event.attempt = 2
    },
  },
  {
    how: 'a failure uses none up',
    rule: 'an attempt is used by a failure, or a crash after its start',
    make: (told) => {
      for (const { event } of told.events)
        if (event.what === 'started' && event.id === 'id-2') event.attempt = Math.max(1, event.attempt - 1)
    },
  },
  {
    how: 'a crash costs an attempt although no start was reported',
    rule: 'an attempt is used by a failure, or a crash after its start',
    make: (told) => {
      told.event('crash noted', 5).started = false
    },
  },
  {
    how: 'a crash costs none although the start was reported',
    rule: 'an attempt is used by a failure, or a crash after its start',
    make: (told) => {
      for (const { process, event } of told.events)
        if (process === 'worker-1' && event.what === 'started' && event.id === 'id-5') event.attempt = 1
    },
  },
  {
    how: 'a job starts in an attempt that it does not have',
    rule: 'no attempt beyond the last',
    make: (told) => {
      told.enqueued(10, 100)
      for (let i = 0; i < 6; i++)
        told.ran(10, 'worker-1', 1_000 + i * 10, { attempt: i + 1, end: 'failed', settled: 'failed' })
      told.completed(10, 'worker-1', 1_100, { attempt: 7 })
    },
  },
  {
    how: 'the death of a worker is noted twice on a job',
    rule: 'a crash is noted once',
    make: (told) => {
      told.enqueued(10, 100)
      for (let i = 0; i < 2; i++) crashed(told, 'worker-2', { started: false, alone: false })
      told.completed(10, 'worker-1', 16_200)
      told.record(10).crashes = 2
    },
  },
  {
    how: 'the store forgets a crash that was told',
    rule: 'crashes are what was noted',
    make: (told) => {
      crashed(told.enqueued(10, 100), 'worker-2', { started: false, alone: false }).completed(10, 'worker-1', 16_200)
      told.record(10).crashes = 0
    },
  },
  {
    how: 'a job is quarantined that kills nobody',
    rule: 'nobody innocent is quarantined',
    make: (told) => {
      Object.assign(told.record(1), { state: 'dead', reason: 'poison' })
      Object.assign(told.event('settled', 1), { as: 'dead', reason: 'poison' })
    },
  },
  {
    how: 'a poison job is quarantined after one crash alone',
    rule: 'quarantine follows two crashes alone',
    make: (told) => {
      Object.assign(told.record(16), { crashesAlone: 1 })
      told.event('crash noted', 16).alone = false
    },
  },
]

const OPERATORS: readonly Break[] = [
  {
    how: 'a job begins after its cancel was answered',
    rule: 'nothing runs after its cancel',
    make: (told) => told.ran(12, 'worker-1', 300, { end: 'aborted' }),
  },
  {
    how: 'a running job is claimed again after its cancel was signalled',
    rule: 'nothing runs after its cancel',
    make: (told) =>
      told
        .enqueued(10, 1_000)
        .ran(10, 'worker-4', 1_100, { claim: 'told', end: 'failed', endAt: 1_300, settled: 'failed' })
        .asked('id-10', 1_200, 'cancel', 'signalled')
        .completed(10, 'worker-4', 1_500, { claim: 'told', attempt: 2 }),
  },
  {
    how: 'a job whose cancel was answered is completed',
    rule: 'a cancelled job is cancelled',
    make: (told) => {
      told.ran(12, 'worker-1', 150, { end: 'effect' })
      told.record(12).state = 'completed'
    },
  },
  {
    how: 'the store knows nothing of a redrive that it answered',
    rule: 'a redriven job lives again',
    make: (told) => {
      told.record(13).redrives = 0
    },
  },
  {
    how: 'a discarded job is there',
    rule: 'a discarded job is gone',
    make: (told) => told.has(14, { state: 'dead', reason: 'rejected', attempts: 1 }),
  },
]

const STORE: readonly Break[] = [
  {
    how: 'one key made two jobs, of one enqueue',
    rule: 'one job for one key',
    make: (told) =>
      told.enqueued(4, 100, { id: 'id-4b', process: 'producer-3' }).completed(4, 'worker-3', 200, { id: 'id-4b' }),
  },
  {
    how: 'one key made two jobs, of two enqueues',
    rule: 'one job for one key',
    make: (told) => {
      Object.assign(told.event('told', 19), { outcome: 'created', id: 'id-19' })
      told.completed(19, 'worker-3', 200)
    },
  },
  {
    how: 'more is missing than a purge has deleted',
    rule: 'what is missing was purged',
    make: (told) =>
      told.enqueued(23, 100).enqueued(24, 100).completed(23, 'worker-1', 300).askedOfQueue('one', 400, 'purge', 0),
  },
  {
    how: 'a purge has deleted what is still there',
    rule: 'what is missing was purged',
    make: (told) => told.completed(17, 'worker-1', 300),
  },
  {
    how: 'a later claim of another job has a smaller fence',
    rule: 'a later claim has a larger fence',
    make: (told) => told.enqueued(10, 100).completed(10, 'worker-4', 2_000, { claim: 'told', fence: 250 }),
  },
  {
    how: 'a claim begins in a paused queue',
    rule: 'a paused queue begins nothing',
    make: (told) => {
      told.claimed('worker-4', 700, [{ id: 'id-21', queue: 'two' }])
      told.add('worker-4', { at: 701, what: 'settled', id: 'id-21', worker: 'worker-4', as: 'given back' })
    },
  },
]

const WORKERS: readonly Break[] = [
  {
    how: 'a worker starts a job long after its last beat',
    rule: 'nothing starts under a lease that may be over',
    make: (told) => told.enqueued(10, 100).completed(10, 'worker-3', 35_000),
  },
  {
    how: 'a worker starts a job before its first beat',
    rule: 'nothing starts under a lease that may be over',
    make: (told) =>
      told
        .withoutAll((event) => event.what === 'worker' && event.worker === 'worker-3' && event.at < 500)
        .enqueued(10, 100)
        .completed(10, 'worker-3', 300),
  },
  {
    how: 'a worker with two slots runs three jobs at once',
    rule: 'no worker runs more than its slots',
    make: (told) => {
      told.add('worker-3', { at: 3, what: 'worker', worker: 'worker-3', is: 'up', slots: 2 })
      for (const n of [25, 26, 27])
        told
          .enqueued(n, 1_000)
          .ran(n, 'worker-3', 1_100 + n, { end: 'effect', endAt: 1_200 + n, settled: 'completed' })
          .has(n, {})
    },
  },
]

export const BREAKS_OF_MOVES: readonly Break[] = [...MOVES, ...OPERATORS, ...STORE, ...WORKERS]
