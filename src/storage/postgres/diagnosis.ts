/** What the store tells of its own pace and health. Called by the command line through the port. */
import type { Env } from '../../core/env.js'
import type { DeadReason, HistoryEntry, JobHistory } from '../../core/job.js'
import { emptyHistory } from '../../core/job.js'
import type {
  Count,
  Crashes,
  Diagnose,
  Ending,
  EndingState,
  EndingsRequest,
  KindRuns,
  Overdue,
  QueuePace,
  WaitingKind,
} from '../storage.js'
import { plainArray, textArray } from './codec.js'
import type { Database, Row } from './database.js'
import { PostgresFacts } from './diagnosis-facts.js'
import { COUNT_MAX, type DiagnosisStatements, diagnosisStatements } from './diagnosis-sql.js'
import { queueError } from './failures.js'
import { decodeCursor, encodeCursor } from './inspect.js'
import { readHistory } from './odd-text.js'
import type { Queues } from './queues.js'
import type { SchemaName } from './schema-name.js'
import { hintsArrive } from './wake.js'

export class PostgresDiagnosis implements Diagnose {
  readonly database: PostgresFacts
  private readonly sql: DiagnosisStatements

  constructor(
    private readonly connection: Database,
    private readonly queues: Queues,
    private readonly env: Env,
    private readonly schema: SchemaName,
  ) {
    this.sql = diagnosisStatements(schema.quoted)
    this.database = new PostgresFacts(connection, schema)
  }

  async pace(queue: string): Promise<QueuePace> {
    const [row] = await this.connection.ask(this.sql.pace, [queue])
    const { oldest_ms: oldestMs, minute, hour, since_ms: sinceMs } = row as Record<string, number | null>
    const cutOff = hour! > COUNT_MAX
    // Where the newest ones alone fill the sample, the minute is what their pace makes of it.
    const paced = cutOff && sinceMs! < 60_000
    return {
      oldestReadyMs: oldestMs === null ? null : Math.max(0, oldestMs!),
      completedMinute: paced
        ? { count: Math.round((COUNT_MAX * 60_000) / Math.max(1, sinceMs!)), exact: false }
        : { count: minute!, exact: true },
      completedHour: counted(hour!),
    }
  }

  async endings(request: EndingsRequest): Promise<{ endings: Ending[]; next: string | null }> {
    const after = request.after === undefined ? [null, null] : decodeCursor(request.after)
    const rows = await this.connection.ask(this.sql.endings, [
      request.queue ?? null,
      request.kind ?? null,
      plainArray(request.states),
      after[0],
      after[1],
      Math.round(request.backMs * 1_000),
      request.limit,
    ])
    await this.queues.learn(rows.map((row) => row.queue as number))
    const endings = rows.map((row) => this.ending(row))
    return { endings, next: rows.length < request.limit ? null : endings.at(-1)!.cursor }
  }

  async clock(): Promise<{ nowMs: number }> {
    const [row] = await this.connection.ask(this.sql.clock, [])
    return { nowMs: row!.now_ms as number }
  }

  async runs(): Promise<KindRuns[]> {
    const rows = await this.connection.ask(this.sql.runs, [])
    await this.queues.learn(rows.map((row) => row.queue as number))
    return rows.map((row) => ({
      kind: row.kind as string,
      queue: this.queues.name(row.queue as number),
      completed: row.completed as number,
      p50Ms: row.p50 as number,
      p95Ms: row.p95 as number,
      p99Ms: row.p99 as number,
      maxMs: row.longest as number,
      timeoutMs: row.timeout as number,
      timedOut: row.timed_out as number,
    }))
  }

  async waiting(queues?: readonly string[]): Promise<WaitingKind[]> {
    const rows = await this.connection.ask(this.sql.waiting, [queues === undefined ? null : textArray(queues)])
    return rows.map((row) => ({
      queue: row.queue as string,
      kind: row.kind as string,
      count: { count: row.count as number, exact: row.cut !== true },
      oldestMs: Math.max(0, row.oldest_ms as number),
    }))
  }

  async overdue(): Promise<Overdue> {
    const [row] = await this.connection.ask(this.sql.overdue, [])
    return { count: counted(row!.count as number), oldestMs: row!.oldest_ms as number }
  }

  async crashes(): Promise<Crashes> {
    const [row] = await this.connection.ask(this.sql.crashes, [])
    const { leases, suspects, poison, lost } = row as Record<string, number>
    return {
      leasesEnded: counted(leases!),
      suspects: counted(suspects!),
      poison: counted(poison!),
      lost: counted(lost!),
    }
  }

  /** A pooler that hands sessions around lets none through. */
  async hints(): Promise<'arrive' | 'do not arrive'> {
    try {
      const arrive = await hintsArrive(this.connection, this.env, this.schema.channel)
      return arrive ? 'arrive' : 'do not arrive'
    } catch (error) {
      throw queueError(error, 'listen')
    }
  }

  private ending(row: Row): Ending {
    const last = lastEntry(row.last as HistoryEntry | null)
    const { stack: _, ...error } = last?.error ?? { name: '', message: '' }
    const dead = row.state === 'dead'
    return {
      id: row.id as string,
      kind: row.kind as string,
      queue: this.queues.name(row.queue as number),
      priority: row.level as number,
      state: row.state as EndingState,
      ...(dead ? { reason: row.reason as DeadReason } : {}),
      attempts: Math.max(row.attempts as number, row.state === 'completed' ? 1 : 0),
      enqueuedAt: row.enqueued as number,
      startedAt: row.started as number | null,
      endedAt: row.ended_ms as number,
      ranMs: row.ran as number | null,
      worker: row.worker as string | null,
      ...(dead && last?.error !== undefined ? { error } : {}),
      ...(dead && last?.note !== undefined ? { note: last.note } : {}),
      cursor: encodeCursor([row.at as string, row.id as string]),
    }
  }
}

/** Written as part of a history, with its escapes. */
function lastEntry(entry: HistoryEntry | null): HistoryEntry | undefined {
  if (entry === null) return undefined
  const history: JobHistory = { ...emptyHistory(), entries: [entry] }
  return readHistory(history).entries[0]
}

function counted(count: number): Count {
  return count > COUNT_MAX ? { count: COUNT_MAX, exact: false } : { count, exact: true }
}
