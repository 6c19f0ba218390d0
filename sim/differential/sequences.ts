/**
 * Random sequences of operations, and how one that shows a difference is made smaller. Everything is made of records and
 * numbers, with no mapping between, so that fast-check can shrink a sequence that it only sees.
 */
import fc from 'fast-check'
import type { DeadReason } from '../../src/core/job.js'
import {
  BAD_PAYLOADS,
  type Command,
  DELAYS,
  DEPTHS,
  ENDINGS,
  INTAKES,
  JOB_KEYS,
  KEY_LIMITS,
  KEYS,
  KINDS,
  LEVELS,
  QUEUES,
  RATES,
  RETENTIONS_MS,
  SHARES,
  SPECS,
  STEPS_MS,
  WORKERS,
} from './commands.js'

export const REASONS: readonly DeadReason[] = ['failed', 'poison', 'expired', 'rejected', 'lost']

const below = (count: number) => fc.nat(count - 1)
/** Mostly the first value, now and then another. */
const mostly = <T>(usual: T, ...others: T[]) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(usual) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  )
const seldom = (max: number) =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(max) })

const step = fc.oneof(
  { weight: 12, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.nat(2) },
  { weight: 2, arbitrary: below(STEPS_MS.length) },
)
const worker = below(WORKERS)
const queue = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: below(QUEUES.length) })
const kind = below(KINDS.length)
const limit = fc.constantFrom(1, 2, 3, 5, 8, 40)
/** Counted from the last one: what is recent is of more interest. */
const recent = fc.oneof({ weight: 3, arbitrary: fc.nat(6) }, { weight: 1, arbitrary: fc.nat(40) })
const jobs = fc.array(recent, { minLength: 1, maxLength: 4 })

const only = seldom(7)

const sketch = fc.record({
  kind,
  queue,
  level: below(LEVELS.length),
  delay: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: below(DELAYS) }),
  due: mostly<'delay' | 'instant' | 'past'>('delay', 'instant', 'past'),
  spec: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: below(SPECS.length) }),
  tenant: below(SHARES.length),
  jobKey: below(JOB_KEYS.length),
  key: seldom(KEYS.length),
  text: mostly(0, 1),
  retention: below(RETENTIONS_MS.length),
  id: seldom(6),
  bad: fc.oneof({ weight: 40, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(BAD_PAYLOADS.length) }),
})

const settlement = fc.record({
  slot: recent,
  of: mostly<'open' | 'any'>('open', 'any'),
  outcome: fc.constantFrom(...ENDINGS),
  delay: below(DELAYS),
  started: fc.constantFrom(0, 3, 7),
  keep: mostly(true, false),
})

const claim = fc.record({
  op: fc.constant('claim' as const),
  step,
  worker,
  which: mostly<'next' | 'again' | 'older' | 'skipping'>('next', 'again', 'older', 'skipping'),
  queues: fc.uniqueArray(
    fc.record({ queue: below(QUEUES.length), share: fc.constantFrom(0, 1, 2, 5), turn: fc.constantFrom(0, 3, 14, 30) }),
    { minLength: 1, maxLength: QUEUES.length, selector: (each) => each.queue },
  ),
  limit,
  kinds: fc.oneof({ weight: 3, arbitrary: fc.constant([0, 1, 2]) }, { weight: 1, arbitrary: fc.uniqueArray(kind) }),
  apart: fc.uniqueArray(kind, { maxLength: 1 }),
  suspects: fc.boolean(),
  finished: fc.array(settlement, { maxLength: 3 }),
})

const beat = fc.record({
  op: fc.constant('beat' as const),
  step,
  worker,
  which: mostly<'next' | 'again' | 'stale'>('next', 'again', 'stale'),
  forgets: seldom(3),
  behind: fc.boolean(),
  strange: seldom(5),
  started: fc.nat(3),
  lagMs: mostly(0, 20, 60_000, 660_000),
})

const filter = fc.record({
  state: fc.constantFrom(
    ...(['ready', 'delayed', 'retrying', 'blocked', 'running', 'completed', 'cancelled', 'dead'] as const),
  ),
  queue: fc.nat(QUEUES.length),
  kind: seldom(KINDS.length),
  reason: seldom(REASONS.length),
  fingerprint: seldom(3),
  since: seldom(8),
  before: seldom(8),
  limit: fc.constantFrom(1, 2, 3, 50),
})

const op = <Name extends string>(name: Name) => ({ op: fc.constant(name), step })

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 20, arbitrary: fc.record({ ...op('enqueue'), jobs: fc.array(sketch, { minLength: 1, maxLength: 6 }) }) },
  { weight: 26, arbitrary: claim },
  {
    weight: 14,
    arbitrary: fc.record({ ...op('settle'), settlements: fc.array(settlement, { minLength: 1, maxLength: 5 }) }),
  },
  { weight: 8, arbitrary: beat },
  { weight: 5, arbitrary: fc.record({ ...op('register'), worker }) },
  { weight: 1, arbitrary: fc.record({ ...op('unregister'), worker }) },
  { weight: 5, arbitrary: fc.record({ ...op('takeOver'), worker, limit }) },
  {
    weight: 3,
    arbitrary: fc.record({ ...op('pass'), beats: fc.constantFrom(1, 3, 4), workers: fc.uniqueArray(worker) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      ...op('crash'),
      survivors: fc.uniqueArray(worker, { minLength: 1, maxLength: 2 }),
      limit,
      judges: mostly(true, false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...op('poison'),
      heir: worker,
      rounds: fc.integer({ min: 1, max: 4 }),
      limit: fc.constantFrom(1, 2, 3),
      started: fc.nat(2),
    }),
  },
  { weight: 8, arbitrary: fc.record({ ...op('promote'), limit }) },
  { weight: 3, arbitrary: fc.record(op('expire')) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...op('prune'),
      completed: below(RETENTIONS_MS.length - 1),
      dead: below(RETENTIONS_MS.length),
      completedMax: fc.nat(4),
      deadMax: fc.nat(4),
      limit,
    }),
  },
  { weight: 4, arbitrary: fc.record({ ...op('cancel'), jobs, only }) },
  { weight: 3, arbitrary: fc.record({ ...op('retry'), jobs, only }) },
  { weight: 1, arbitrary: fc.record({ ...op('discard'), jobs, only }) },
  { weight: 3, arbitrary: fc.record({ ...op('redrive'), jobs, force: fc.boolean(), only }) },
  { weight: 1, arbitrary: fc.record({ ...op('pause'), queue }) },
  { weight: 4, arbitrary: fc.record({ ...op('resume'), queue }) },
  { weight: 1, arbitrary: fc.record({ ...op('refuse'), queue }) },
  { weight: 1, arbitrary: fc.record({ ...op('purge'), queue, limit }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...op('order'),
      queue,
      order: fc.constantFrom(...(['ageing', 'strict', 'weighted'] as const)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...op('limit'),
      queue,
      concurrency: fc.nat(5),
      rate: fc.nat(RATES.length + 1),
      perKey: fc.nat(KEY_LIMITS.length + 1),
      depth: fc.nat(DEPTHS.length + 1),
      intake: fc.nat(INTAKES.length + 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ ...op('get'), jobs }) },
  { weight: 5, arbitrary: fc.record({ ...op('list'), filter }) },
  { weight: 4, arbitrary: fc.record({ ...op('match'), filter }) },
  {
    weight: 1,
    arbitrary: fc.record({ ...op('groups'), queue: fc.nat(QUEUES.length), kind: seldom(KINDS.length), limit }),
  },
  { weight: 2, arbitrary: fc.record({ ...op('look'), queue }) },
)

/** Sequences of exactly so many operations, which shrink to shorter ones. */
export function sequencesOf(operations: number): fc.Arbitrary<Command[]> {
  const whole = fc.array(command, { minLength: operations, maxLength: operations, size: 'max' })
  const shorter = fc.array(command, { minLength: 1, maxLength: operations, size: 'max' })
  return new Sequences(whole, shorter)
}

class Sequences extends fc.Arbitrary<Command[]> {
  constructor(
    private readonly whole: fc.Arbitrary<Command[]>,
    private readonly shorter: fc.Arbitrary<Command[]>,
  ) {
    super()
  }

  /** Without the bias of fast-check, under which a sequence would be the same operation over and over. */
  override generate(random: fc.Random): fc.Value<Command[]> {
    return new fc.Value(this.whole.generate(random, undefined).value_, undefined)
  }

  override canShrinkWithoutContext(value: unknown): value is Command[] {
    return this.shorter.canShrinkWithoutContext(value)
  }

  override shrink(value: Command[], context: unknown): fc.Stream<fc.Value<Command[]>> {
    return this.shorter.shrink(value, context)
  }
}
