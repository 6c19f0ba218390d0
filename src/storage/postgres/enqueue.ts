/** Puts jobs into their places: plain ones in one cheap statement, the others in one that knows everything. Called by the client through the port. */
import { QueueError } from '../../core/errors.js'
import { keyOf } from '../../core/keys.js'
import { retryAfterMs } from '../../core/limits.js'
import type { EnqueueOptions, EnqueueOutcome, Full, NewJob } from '../storage.js'
import { laneOf, microseconds, plainArray, queueOfLane, specText, textArray } from './codec.js'
import type { Database, Row, Statement } from './database.js'
import { failureKind, isTemporary, queueError, sqlState } from './failures.js'
import type { Marks, Queues } from './queues.js'
import { type TransactionClient, transactionClient } from './transaction.js'

/** Ready at once and nothing to look up: the cheap statement will do. */
function isPlain({ chosen, idempotency, spec, due }: NewJob): boolean {
  return (
    !chosen &&
    idempotency === undefined &&
    spec.expiresInMs === undefined &&
    spec.tenant === undefined &&
    keyOf(spec) === undefined &&
    'delayMs' in due &&
    due.delayMs <= 0
  )
}

/** Its level needs a fair list, its queue a look for keys. */
function marksOf({ spec }: NewJob): Marks {
  return { fair: spec.tenant !== undefined, keyed: keyOf(spec) !== undefined }
}

interface Placed {
  job: NewJob
  index: number
  lane: number
}

type Runner = (statement: Statement, values: unknown[]) => Promise<Row[]>

const CREATED: EnqueueOutcome = Object.freeze({ status: 'created' })
const DRAINING: EnqueueOutcome = Object.freeze({ status: 'draining' })

export class Enqueue {
  private readonly ready: Statement
  private readonly mixed: Statement

  constructor(
    private readonly database: Database,
    private readonly queues: Queues,
    schema: string,
  ) {
    this.ready = {
      name: 'lh_enqueue_plain',
      text: `select ${schema}.enqueue_plain($1::uuid[], $2::json, $3::int[], $4::int[], $5::text[], $6::json[], $7::int[], $8) as refused`,
    }
    this.mixed = {
      name: 'lh_enqueue_any',
      text: `select status, first, bound from ${schema}.enqueue_any($1::uuid[], $2::int[], $3::text[], $4::json[], $5::json[],
        $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::bigint[], $12::boolean[], $13)`,
    }
  }

  async enqueue(jobs: readonly NewJob[], options: EnqueueOptions = {}): Promise<EnqueueOutcome[]> {
    const outcomes = new Array<EnqueueOutcome>(jobs.length)
    const { plain, mixed } = await this.placed(jobs)
    const transaction = options.tx === undefined ? undefined : transactionClient(options.tx)
    const run = transaction
      ? runIn(transaction)
      : (statement: Statement, values: unknown[]) => this.database.run(statement, values)
    const always = transaction !== undefined
    try {
      if (plain.length > 0) await this.halving(plain, outcomes, (part) => this.runReady(part, run, always))
      if (mixed.length > 0) await this.halving(mixed, outcomes, (part) => this.runMixed(part, run, always), transaction)
    } catch (error) {
      throw transaction === undefined && outcomes.some((outcome) => outcome?.status === 'created')
        ? partlyStored(error, jobs[0]!)
        : error
    }
    return outcomes
  }

  private async placed(jobs: readonly NewJob[]): Promise<{ plain: Placed[]; mixed: Placed[] }> {
    const plain: Placed[] = []
    const mixed: Placed[] = []
    /** The order of the call holds inside of a lane, and for who fits into a queue: its jobs go by one statement. */
    const shared = new Set<number>()
    for (let index = 0; index < jobs.length; index++) {
      const job = jobs[index]!
      const id = this.queues.known(job.queue, job.priority, marksOf(job)) ?? (await this.ensured(job))
      const placed = { job, index, lane: laneOf(id, job.priority) }
      if (isPlain(job)) plain.push(placed)
      else {
        mixed.push(placed)
        shared.add(id)
      }
    }
    if (plain.length === 0 || mixed.length === 0) return { plain, mixed }
    const together = [...mixed, ...plain.filter(({ lane }) => shared.has(queueOfLane(lane)))]
    return {
      plain: plain.filter(({ lane }) => !shared.has(queueOfLane(lane))),
      mixed: together.sort((a, b) => a.index - b.index),
    }
  }

  private async ensured(job: NewJob): Promise<number> {
    try {
      return await this.queues.ensure(job.queue, job.priority, marksOf(job))
    } catch (error) {
      // Whatever became of the queue's row: the job itself was not sent.
      throw queueError(error, 'enqueue', job.id)
    }
  }

  /**
   * One bad item never sinks its neighbours: a batch that the server refuses is halved until the item is found. In a
   * caller's transaction a savepoint keeps the refusal from ending it; plain jobs need none, as nothing of theirs can be
   * refused.
   */
  private async halving(
    part: Placed[],
    outcomes: EnqueueOutcome[],
    send: (part: Placed[]) => Promise<EnqueueOutcome[]>,
    transaction?: TransactionClient,
  ): Promise<void> {
    if (transaction) await transaction.query('savepoint leasehold_enqueue')
    try {
      const answers = await send(part)
      if (transaction) await transaction.query('release savepoint leasehold_enqueue')
      for (let i = 0; i < part.length; i++) outcomes[part[i]!.index] = answers[i]!
      return
    } catch (error) {
      if (transaction) await transaction.query('rollback to savepoint leasehold_enqueue')
      const single = refusal(error, part.map(({ job }) => job).find(canBeBusy) ?? part[0]!.job)
      if (part.length === 1) {
        outcomes[part[0]!.index] = single
        return
      }
    }
    const half = part.length >> 1
    await this.halving(part.slice(0, half), outcomes, send, transaction)
    await this.halving(part.slice(half), outcomes, send, transaction)
  }

  private async runReady(part: Placed[], run: Runner, always: boolean): Promise<EnqueueOutcome[]> {
    const groups = grouped(part)
    const ordered = groups.flatMap((group) => group.jobs)
    const payloads = groups.map((group) => `[${group.jobs.map((placed) => placed.job.payload).join(',')}]`)
    const one = groups.length === 1
    const [row] = await run(this.ready, [
      plainArray(ordered.map((placed) => placed.job.id)),
      one ? payloads[0]! : `[${payloads.join(',')}]`,
      one ? null : plainArray(groups.map((group) => group.jobs.length)),
      plainArray(groups.map((group) => group.lane)),
      textArray(groups.map((group) => group.kind)),
      textArray(groups.map((group) => group.spec)),
      one ? null : plainArray(ordered.map((placed) => placed.index)),
      always,
    ])
    const refused = row!.refused as WireRefused | null
    if (refused === null) return part.map(() => CREATED)
    // Answers are in the order of `part`, the store's ordinals in that of the groups.
    const full = new Map(refused.full?.map((bound) => [ordered[bound.o - 1], bound]))
    const early = new Map(refused.early?.map((bound) => [ordered[bound.o - 1], bound]))
    return part.map((placed) => {
      if (refused.draining?.includes(queueOfLane(placed.lane))) return DRAINING
      const bound = full.get(placed)
      if (bound !== undefined) return fullOutcome(bound)
      const wait = early.get(placed)
      return wait === undefined ? CREATED : earlyOutcome(wait)
    })
  }

  private async runMixed(part: Placed[], run: Runner, always: boolean): Promise<EnqueueOutcome[]> {
    const jobs = part.map((placed) => placed.job)
    const keyed = jobs.some((job) => job.idempotency !== undefined)
    const rows = await run(this.mixed, [
      plainArray(jobs.map((job) => job.id)),
      plainArray(part.map((placed) => placed.lane)),
      textArray(jobs.map((job) => job.kind)),
      textArray(jobs.map((job) => job.payload)),
      textArray(jobs.map((job) => specText(job.spec))),
      plainArray(jobs.map((job) => ('delayMs' in job.due ? microseconds(job.due.delayMs) : null))),
      plainArray(jobs.map((job) => ('atMs' in job.due ? microseconds(job.due.atMs) : null))),
      plainArray(jobs.map((job) => (job.spec.expiresInMs === undefined ? null : microseconds(job.spec.expiresInMs)))),
      keyed ? textArray(jobs.map((job) => job.idempotency?.key ?? null)) : null,
      keyed ? textArray(jobs.map((job) => job.idempotency?.payloadHash ?? null)) : null,
      keyed
        ? plainArray(jobs.map((job) => (job.idempotency ? microseconds(job.idempotency.retentionMs) : null)))
        : null,
      jobs.some((job) => job.chosen) ? plainArray(jobs.map((job) => job.chosen === true)) : null,
      always,
    ])
    return rows.map((row) => outcomeOf(row))
  }
}

/** What `overflow` says of an item. */
interface WireBound {
  o: number
  scope: Full['scope']
  most: number
  depth: number
  ended: number
  since_us: number
}

/** What `without_token` says of an item. */
interface WireWait {
  o: number
  most: number
  per_us: number
  wait_us: number
}

interface WireRefused {
  draining?: number[] | null
  full?: WireBound[] | null
  early?: WireWait[] | null
}

function fullOutcome({ scope, most: limit, depth, ended: count, since_us: sinceUs }: WireBound): EnqueueOutcome {
  const retry = retryAfterMs({ depth, limit }, { count, sinceMs: sinceUs / 1_000 })
  return { status: 'full', scope, depth, limit, retryAfterMs: retry }
}

function earlyOutcome({ most: limit, per_us: perUs, wait_us: waitUs }: WireWait): EnqueueOutcome {
  return { status: 'early', limit, perMs: perUs / 1_000, retryAfterMs: Math.ceil(waitUs / 1_000) }
}

function outcomeOf(row: Row): EnqueueOutcome {
  if (row.status === 'full') return fullOutcome(row.bound as WireBound)
  if (row.status === 'early') return earlyOutcome(row.bound as WireWait)
  if (row.status === 'known') return { status: 'refused', code: 'DUPLICATE_ID', cause: undefined }
  return { status: row.status, ...(row.first ? { id: row.first } : {}) } as EnqueueOutcome
}

interface Group {
  lane: number
  kind: string
  spec: string | null
  jobs: Placed[]
}

/** Jobs of one lane, kind and spec share these three values in the statement. */
function grouped(part: Placed[]): Group[] {
  const groups = new Map<string, Group>()
  let last: Group | undefined
  let lastSpec: unknown
  for (const placed of part) {
    const { job, lane } = placed
    if (last !== undefined && last.lane === lane && last.kind === job.kind && lastSpec === job.spec) {
      last.jobs.push(placed)
      continue
    }
    const spec = specText(job.spec)
    const key = `${lane} ${job.kind} ${spec}`
    last = groups.get(key) ?? { lane, kind: job.kind, spec, jobs: [] }
    lastSpec = job.spec
    groups.set(key, last)
    last.jobs.push(placed)
  }
  return [...groups.values()]
}

/** A stranger's transaction may be deciding on its key or id. */
function canBeBusy({ idempotency, chosen }: NewJob): boolean {
  return idempotency !== undefined || chosen === true
}

/** What the refusal of a single job means; throws when it is no refusal of this job. */
function refusal(error: unknown, job: NewJob): EnqueueOutcome {
  const state = sqlState(error)
  // Of others than the key or id that it waited for, a lock that does not come is the store's trouble.
  if (state === '55P03' && canBeBusy(job)) return { status: 'busy' }
  if (failureKind(error) === 'unknown')
    throw new QueueError(
      'OUTCOME_UNKNOWN',
      `enqueue: the connection broke before the answer came; job ${job.id} may or may not be stored`,
      { cause: error, jobId: job.id },
    )
  const known = queueError(error, 'enqueue', job.id)
  if (isTemporary(error) || known.code !== 'STORE_REJECTED') throw known
  return { status: 'refused', code: state === '23505' ? 'DUPLICATE_ID' : 'STORE_REJECTED', cause: error }
}

/** One call may be several statements, each committed by itself: after the first one nobody may be told "not stored". */
function partlyStored(error: unknown, first: NewJob): QueueError {
  const said = error instanceof Error ? error.message : String(error)
  return new QueueError('OUTCOME_UNKNOWN', `enqueue: a part of the call was stored before it broke off: ${said}`, {
    cause: error,
    jobId: first.id,
  })
}

function runIn(transaction: TransactionClient): Runner {
  return async (statement, values) => (await transaction.query(statement.text, values)).rows
}
