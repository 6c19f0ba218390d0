/** Looks at jobs, queues and workers. Called by the client through the port. */

import { QueueError } from '../../core/errors.js'
import {
  type DeadReason,
  emptyHistory,
  type HistoryEntry,
  JOB_STATES,
  type JobHistory,
  type JobSpec,
  type JobState,
  type Json,
} from '../../core/job.js'
import type { JobFacts } from '../../core/job-facts.js'
import type { KeyLimit } from '../../core/keys.js'
import type {
  CapacityFacts,
  Count,
  DeadGroup,
  DeadGroups,
  DepthLimit,
  Inspect,
  JobPage,
  JobView,
  ListRequest,
  MatchPage,
  MatchRequest,
  QueueCounts,
  QueueLimits,
  QueueView,
  RateLimit,
  WorkerView,
} from '../storage.js'
import { decodeSpec, INT_MAX, plainArray } from './codec.js'
import type { Database, Row, Statement } from './database.js'
import { groupsStatement } from './dead-sql.js'
import { decodeFacts } from './facts.js'
import { factsStatement } from './facts-sql.js'
import { estimatedRows, estimateOf, type InspectStatements, inspectStatements } from './inspect-sql.js'
import { COUNT_EXACT_MAX, RARE_COUNT_EXACT_MAX } from './job-sql.js'
import { type MatchStatements, matchStatements, matchStep } from './match-sql.js'
import { readHistory } from './odd-text.js'
import type { Queues } from './queues.js'

export class PostgresInspect implements Inspect {
  private readonly sql: InspectStatements
  private readonly matching: MatchStatements
  private readonly grouping: Statement
  private readonly explaining: Statement
  /** By the number of a queue, the states of which it had more than are counted when it was last looked at. */
  private readonly tooMany = new Map<number, JobState[]>()

  constructor(
    private readonly database: Database,
    private readonly queueNames: Queues,
    private readonly schema: string,
  ) {
    this.sql = inspectStatements(schema)
    this.matching = matchStatements(schema)
    this.grouping = groupsStatement(schema)
    this.explaining = factsStatement(schema)
  }

  async get(ids: readonly string[]): Promise<(JobView | null)[]> {
    const rows = await this.database.ask(this.sql.get, [plainArray(ids)])
    const views = new Map((await this.views(rows)).map((view) => [view.id, view]))
    return ids.map((id) => views.get(id) ?? null)
  }

  async list(request: ListRequest): Promise<JobPage> {
    const after = request.after === undefined ? [] : decodeCursor(request.after)
    const { state, fingerprint } = request
    const statement = this.sql.list[state === 'dead' && fingerprint !== undefined ? 'dead of one failure' : state]
    const rows = await this.database.ask(statement, statement.values(request, after))
    const jobs = await this.views(rows)
    const cursors = rows.map((row) => encodeCursor(row.cursor as string[]))
    return { jobs, cursors, next: rows.length < request.limit ? null : (cursors.at(-1) ?? null) }
  }

  async match(request: MatchRequest): Promise<MatchPage> {
    const after = request.after === undefined ? [] : decodeCursor(request.after)
    const queue = request.queue === undefined ? undefined : await this.queueNames.find(request.queue)
    if (queue === null) return { jobs: [], next: null, nowMs: await this.nowMs() }
    const { statement, values, limit } = matchStep(this.matching, request, queue, after)
    const [row] = await this.database.ask(statement, values)
    const {
      matched,
      rest,
      now_us: nowUs,
    } = row as { matched: WireMatch[] | null; rest: string[] | null; now_us: number }
    const found = matched ?? []
    await this.queueNames.learn(found.map(([, , queueId]) => queueId))
    const jobs = found.map(([id, kind, queueId, reason]) => ({
      id,
      kind,
      queue: this.queueNames.name(queueId),
      ...(reason === null ? {} : { reason }),
    }))
    const next = found.length >= limit ? found.at(-1)![4] : rest
    return { jobs, next: next && encodeCursor(next), nowMs: nowUs / 1_000 }
  }

  async deadGroups({ queue, kind, limit }: { queue?: string; kind?: string; limit: number }): Promise<DeadGroups> {
    const id = queue === undefined ? undefined : await this.queueNames.find(queue)
    if (id === null) return { groups: [], complete: true }
    const bounds = id === undefined ? [0, INT_MAX] : [id, id]
    const rows = await this.database.ask(this.grouping, [...bounds, kind ?? null, limit])
    await this.queueNames.learn(rows.map((row) => row.queue as number))
    const groups = rows.slice(0, limit).map((row) => groupOf(row, this.queueNames.name(row.queue as number)))
    return { groups, complete: rows.length <= limit && rows[0]?.more !== true }
  }

  async queues(): Promise<QueueView[]> {
    const rows = await this.database.ask(this.sql.queues, [])
    return rows.map((row) => ({
      queue: row.name as string,
      paused: row.paused as boolean,
      draining: row.draining as boolean,
      order: row.ordering as QueueView['order'],
      limits: limitsOf(row),
    }))
  }

  async counts(queue: string): Promise<QueueCounts> {
    const id = await this.queueNames.find(queue)
    if (id === null) return countsOf(() => ({ count: 0, exact: true }))
    // Whoever counts a queue counts it again: what was too much the last time is estimated beside the count, not after it.
    const before = this.tooMany.get(id) ?? []
    const [[row], guessed] = await Promise.all([this.database.ask(this.sql.counts, [id]), this.estimates(before, id)])
    const counted = (state: JobState): number | null => row![state] as number | null
    const isExact = (state: JobState): boolean => (counted(state) ?? Number.POSITIVE_INFINITY) <= EXACT_MAX[state]
    const many = JOB_STATES.filter((state) => !isExact(state))
    this.tooMany.set(id, many)
    const unguessed = many.filter((state) => !guessed.has(state))
    const estimates = new Map([...guessed, ...(await this.estimates(unguessed, id))])
    return countsOf((state) =>
      isExact(state)
        ? { count: counted(state)!, exact: true }
        : { count: Math.max(counted(state) ?? 0, Math.round(estimates.get(state)!)), exact: false },
    )
  }

  private async estimates(states: readonly JobState[], queueId: number): Promise<Map<JobState, number>> {
    if (states.length === 0) return new Map()
    const [plan] = await this.database.ask(estimateOf(this.schema, states, queueId), [])
    return estimatedRows(plan!)
  }

  async facts(id: string): Promise<JobFacts | null> {
    const [row] = await this.database.ask(this.explaining, [id])
    return row === undefined ? null : decodeFacts(row)
  }

  async workers(): Promise<WorkerView[]> {
    const rows = await this.database.ask(this.sql.workers, [])
    return rows.map((row) => ({
      ...(row.info as Omit<WorkerView, 'id'>),
      id: row.id as string,
      startedAt: row.started_at as number,
      lastBeatAgoMs: row.beat_ago as number,
      mainLagMs: row.main_lag as number,
      leases: row.leases as number,
      jobs: row.jobs as number,
    }))
  }

  async capacity(queue: string): Promise<CapacityFacts> {
    const [row] = await this.database.ask(this.sql.capacity, [queue])
    const { workers, slots, busy, ready, later, ended, since_us: sinceUs } = row as Record<string, number>
    const exact = row!.exact as boolean
    return {
      workers: workers!,
      slots: slots!,
      busy: busy!,
      paused: row!.paused as boolean,
      ready: { count: ready!, exact },
      depth: { count: ready! + later!, exact },
      drained: { count: ended!, sinceMs: sinceUs! / 1_000 },
      ranMs: row!.ran_ms as number | null,
      limits: limitsOf(row!),
    }
  }

  private async nowMs(): Promise<number> {
    const [row] = await this.database.ask(
      { name: 'lh_clock', text: `select ${this.schema}.clock()::float8 as now_us` },
      [],
    )
    return (row!.now_us as number) / 1_000
  }

  private async views(rows: Row[]): Promise<JobView[]> {
    await this.queueNames.learn(rows.map((row) => row.queue as number))
    return rows.map((row) => this.view(row))
  }

  private view(row: Row): JobView {
    const view: JobView = {
      id: row.id as string,
      kind: row.kind as string,
      queue: this.queueNames.name(row.queue as number),
      priority: row.level as number,
      state: row.state as JobState,
      payload: row.payload as Json,
      spec: decodeSpec(row.spec as Partial<JobSpec> | null),
      history: readHistory(row.history as JobHistory | null),
      enqueuedAt: row.enqueued as number,
      dueAt: row.due as number | null,
      startedAt: row.started as number | null,
      endedAt: row.ended as number | null,
      ranMs: row.ran as number | null,
      worker: row.worker as string | null,
    }
    if (row.result_text !== null) view.result = JSON.parse(row.result_text as string) as Json
    if (row.reason !== null) view.reason = row.reason as DeadReason
    if (row.cancelling === true) view.cancelling = true
    return view
  }
}

const EXACT_MAX: Record<JobState, number> = {
  ready: COUNT_EXACT_MAX,
  delayed: RARE_COUNT_EXACT_MAX,
  retrying: RARE_COUNT_EXACT_MAX,
  blocked: RARE_COUNT_EXACT_MAX,
  running: COUNT_EXACT_MAX,
  completed: RARE_COUNT_EXACT_MAX,
  cancelled: RARE_COUNT_EXACT_MAX,
  dead: RARE_COUNT_EXACT_MAX,
}

type WireMatch = [id: string, kind: string, queue: number, reason: DeadReason | null, cursor: string[]]

function limitsOf(row: Row): QueueLimits {
  return {
    concurrency: row.concurrency as number | null,
    rate: rateOf(row.rate_count, row.rate_us, row.rate_burst),
    depth: depthOf(row),
    intake: rateOf(row.intake_count, row.intake_us, row.intake_burst),
    perKey: row.key_limits as KeyLimit | null,
  }
}

function rateOf(limit: unknown, us: unknown, burst: unknown): RateLimit | null {
  if (limit === null) return null
  return { limit: limit as number, perMs: (us as number) / 1_000, burst: burst as number }
}

function depthOf({ depth, depth_tenant: perTenant, depth_kinds: kinds }: Row): DepthLimit | null {
  if (depth === null) return null
  return { limit: depth as number, perTenant: perTenant as number | null, kinds: kinds as DepthLimit['kinds'] }
}

function countsOf(count: (state: JobState) => Count): QueueCounts {
  return Object.fromEntries(JOB_STATES.map((state) => [state, count(state)])) as QueueCounts
}

function groupOf(row: Row, queue: string): DeadGroup {
  const last = row.last as HistoryEntry | null
  const { error, note } = readHistory({ ...emptyHistory(), entries: last === null ? [] : [last] }).entries[0] ?? {}
  const { stack: _, ...told } = error ?? { name: '', message: '' }
  const count = row.count as number
  return {
    queue,
    kind: row.kind as string,
    reason: row.reason as DeadReason,
    fingerprint: (row.fingerprint as string) || null,
    count: { count: Math.min(count, COUNT_EXACT_MAX), exact: count <= COUNT_EXACT_MAX },
    oldestAt: row.oldest as number,
    newestAt: row.newest as number,
    sample: { id: row.id as string, error: error === undefined ? null : told, ...(note === undefined ? {} : { note }) },
  }
}

export function encodeCursor(parts: string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

export function decodeCursor(after: string): string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
    if (Array.isArray(parts) && parts.every((part) => typeof part === 'string')) return parts
  } catch {
    // Said below.
  }
  throw new QueueError('INVALID_OPTION', 'after: give the `next` of an earlier page of the same list', {
    field: 'after',
  })
}
