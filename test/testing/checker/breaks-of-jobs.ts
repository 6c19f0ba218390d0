/** Ways to break the rules about what is accepted, how it ends and how it runs: each breaks one rule and no other. */
import { ATTEMPTS, KILLED_AT } from './clean.js'
import type { Told } from './told.js'

export interface Break {
  how: string
  rule: string
  make: (told: Told) => void
}

const ACCEPTANCE: readonly Break[] = [
  {
    how: 'the record of an accepted job is gone',
    rule: 'what was accepted is known',
    make: (told) => told.hasNot(1),
  },
  {
    how: 'a job that nobody was told of ran, and is gone',
    rule: 'what was accepted is known',
    make: (told) => told.add('producer', { at: 50, what: 'sending', n: 10 }).ran(10, 'worker-1', 60, { end: 'effect' }),
  },
  {
    how: 'a duplicate was told of a job that is not there',
    rule: 'what was accepted is known',
    make: (told) => {
      told.withoutAll((event) => ('n' in event && event.n === 4) || ('id' in event && event.id === 'id-4'))
      told.hasNot(4)
      told.add(
        'producer-2',
        { at: 99, what: 'sending', n: 4 },
        { at: 102, what: 'told', n: 4, outcome: 'duplicate', id: 'id-4' },
      )
    },
  },
  {
    how: 'a job of which no record is kept never ran, and is gone',
    rule: 'what was accepted is known',
    make: (told) => told.withoutAll((event) => 'id' in event && event.id === 'id-20' && event.what !== 'told'),
  },
  {
    how: 'one enqueue made two jobs',
    rule: 'one job for one enqueue',
    make: (told) => told.completed(1, 'worker-3', 300, { id: 'id-1b' }),
  },
  {
    how: 'an enqueue of an unknown outcome made two jobs',
    rule: 'one job for one enqueue',
    make: (told) =>
      told
        .add('producer', { at: 50, what: 'sending', n: 10 }, { at: 51, what: 'told', n: 10, outcome: 'unknown' })
        .completed(10, 'worker-1', 60)
        .completed(10, 'worker-3', 70, { id: 'id-10b' }),
  },
  {
    how: 'a job of a transaction that was rolled back runs',
    rule: 'a rollback leaves nothing',
    make: (told) => told.completed(8, 'worker-1', 400),
  },
  {
    how: 'a job whose enqueue was refused runs',
    rule: 'a refusal leaves nothing',
    make: (told) => told.completed(9, 'worker-1', 400),
  },
  {
    how: 'a job is there that nobody planned',
    rule: 'nothing comes unasked',
    make: (told) => told.completed(99, 'worker-1', 400),
  },
  {
    how: 'a job is there that nobody has sent',
    rule: 'nothing comes unasked',
    make: (told) => told.completed(10, 'worker-1', 400),
  },
  {
    how: 'a queue that drains takes a job',
    rule: 'a draining queue takes nothing',
    make: (told) => {
      Object.assign(told.event('told', 18), { outcome: 'created', id: 'id-18', code: undefined })
      told.completed(18, 'worker-1', 450)
    },
  },
]

const ENDINGS: readonly Break[] = [
  {
    how: 'a job is still waiting',
    rule: 'everything ends',
    make: (told) => {
      told.record(1).state = 'ready'
    },
  },
  {
    how: 'a job is completed and had no effect',
    rule: 'no completion without an effect',
    make: (told) => told.without('effect', 1),
  },
  {
    how: 'a good job is dead',
    rule: 'a job ends as its sort has to',
    make: (told) => {
      Object.assign(told.record(1), { state: 'dead', reason: 'failed' })
      told.event('settled', 1).as = 'dead'
    },
  },
  {
    how: 'a job that always fails is completed',
    rule: 'a job ends as its sort has to',
    make: (told) => {
      Object.assign(told.record(2), { state: 'completed', reason: undefined })
      told.withoutAll((event) => event.what === 'settled' && event.id === 'id-2' && event.at > 500)
      told.add('worker-1', { at: 500.5, what: 'effect', n: 2, id: 'id-2', fence: 500 })
      told.add('worker-1', { at: 502, what: 'settled', id: 'id-2', worker: 'worker-1', as: 'completed' })
    },
  },
  {
    how: 'a good job is cancelled, and nobody had asked for it',
    rule: 'a job ends as its sort has to',
    make: (told) => {
      told.withoutAll((event) => (event.what === 'asked' || event.what === 'answered' ? event.id === 'id-12' : false))
    },
  },
  {
    how: 'a job is dead before its attempts are used up',
    rule: 'dead after exactly its attempts',
    make: (told) => {
      told.record(2).attempts = ATTEMPTS - 1
    },
  },
  {
    how: 'a job is dead after more attempts than it has',
    rule: 'dead after exactly its attempts',
    make: (told) => {
      told.record(2).attempts = ATTEMPTS + 1
    },
  },
  {
    how: 'a job is dead after attempts that never started',
    rule: 'dead after exactly its attempts',
    make: (told) => {
      told.withoutAll((event) => 'id' in event && event.id === 'id-2' && event.at < 400 && event.what !== 'told')
      // So the attempt was used up by a crash.
      told.record(2).crashes = 1
    },
  },
  {
    how: 'an at-most-once job was lost with a worker that lives',
    rule: 'lost only with a dead worker',
    make: (told) => {
      told.record(3).lostWith = 'worker-3'
    },
  },
  {
    how: 'a completion is told twice',
    rule: 'one end is told',
    make: (told) => told.add('worker-3', { at: 400, what: 'settled', id: 'id-1', worker: 'worker-3', as: 'completed' }),
  },
  { how: 'a job is in the store twice', rule: 'one record', make: (told) => told.has(1, {}) },
  {
    how: 'the store has another end than was told',
    rule: 'the store has the end that was told',
    make: (told) => {
      told.event('settled', 1).as = 'dead'
    },
  },
]

const RUNS: readonly Break[] = [
  {
    how: 'an effect is repeated after it was told as completed',
    rule: 'an effect is repeated only for a reason',
    make: (told) => told.ran(1, 'worker-3', 400, { end: 'effect' }),
  },
  {
    how: 'an effect is repeated although its worker lives and was told nothing',
    rule: 'an effect is repeated only for a reason',
    make: (told) => told.without('settled', 1).ran(1, 'worker-3', 400, { end: 'effect' }),
  },
  {
    how: 'an at-most-once job starts again',
    rule: 'at most once',
    make: (told) => told.ran(3, 'worker-1', 16_200, { attempt: 2, end: 'failed' }),
  },
  {
    how: 'a delayed job starts early',
    rule: 'nothing runs early',
    make: (told) => {
      told.event('started', 6).at = 1_000
    },
  },
  {
    how: 'a retry does not wait for its backoff',
    rule: 'a wait is kept',
    make: (told) => {
      told.event('settled', 2).againInMs = 150
    },
  },
  {
    how: 'a snoozed job comes back early',
    rule: 'a wait is kept',
    make: (told) => {
      told.event('settled', 11).againInMs = 700
    },
  },
  {
    how: 'the later run of a job has the smaller fence',
    rule: 'a later start has a larger fence',
    make: (told) => {
      for (const { process, event } of told.events)
        if (process === 'worker-1' && 'fence' in event && event.id === 'id-5') event.fence = 1
    },
  },
  {
    how: 'a job runs in two living workers at once',
    rule: 'one run at a time',
    make: (told) =>
      told
        .withoutAll((event) => event.what === 'worker' && event.is === 'beaten')
        .add('driver', { at: 1_000, what: 'spawned', process: 'worker-5', role: 'worker' })
        .enqueued(10, 1_000)
        .ran(10, 'worker-5', 1_100, { end: 'failed', endAt: 1_300 })
        .completed(10, 'worker-3', 1_200),
  },
  {
    how: 'a job is given to another worker within the lease',
    rule: 'no two valid leases',
    make: (told) =>
      told
        .enqueued(10, 1_000)
        .ran(10, 'worker-3', 1_100, { end: 'aborted', endAt: 1_300, settled: 'lost' })
        .completed(10, 'worker-1', 1_200),
  },
  {
    how: 'an expired job had run',
    rule: 'what expired never ran',
    make: (told) => told.ran(15, 'worker-1', 300, { end: 'snoozed', settled: 'snoozed' }),
  },
  {
    how: 'a job starts when its expiry is over',
    rule: 'nothing starts after its expiry',
    make: (told) => {
      told.event('started', 22).at = 700
      told.event('effect', 22).at = 701
    },
  },
]

const SCENE: readonly Break[] = [
  {
    how: 'a worker that has just beaten is taken over',
    rule: 'nobody alive is taken over',
    make: (told) =>
      told
        .add('worker-3', { at: 15_000, what: 'worker', worker: 'worker-3', is: 'beaten', confirmedAt: 15_000 })
        .add('worker-1', { at: 16_000, what: 'took over', worker: 'worker-1', deadWorker: 'worker-3', jobs: 1 }),
  },
  {
    how: 'a worker ends by itself',
    rule: 'a process ends only as it is told',
    make: (told) => told.add('driver', { at: KILLED_AT, what: 'gone', process: 'worker-3', code: 1, signal: null }),
  },
  {
    how: 'a worker does not end on SIGTERM, and is killed for it',
    rule: 'a process ends only as it is told',
    make: (told) =>
      told.add('driver', { at: 90_000, what: 'gone', process: 'worker-3', code: null, signal: 'SIGKILL' }),
  },
]

export const BREAKS_OF_JOBS: readonly Break[] = [...ACCEPTANCE, ...ENDINGS, ...RUNS, ...SCENE]
