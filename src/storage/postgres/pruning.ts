/**
 * Deletes what has outlived its retention, in small steps, and makes the days ahead. Called by upkeep.ts.
 */

import { DEAD_FENCE_MS, type Retention } from '../storage.js'
import type { Database, Statement } from './database.js'
import { DayPruning, ensureDays } from './day-pruning.js'
import { failureKind, queueError } from './failures.js'
import { lettersReleased } from './functions/keys.js'
import { KeyPruning } from './key-pruning.js'
import { RecordPruning } from './record-pruning.js'

/** What one part of a prune has done. `failure`: what of it could not be done. */
interface Part {
  deleted: number
  more: boolean
  failure?: Error | undefined
}

export class Pruning {
  private readonly rows: Statement
  private readonly ensureDays: Statement
  private readonly days: DayPruning
  private readonly keys: KeyPruning
  private readonly records: RecordPruning

  constructor(
    private readonly database: Database,
    schema: string,
    schemaName: string,
  ) {
    this.ensureDays = ensureDays(schema)
    this.days = new DayPruning(database, schema, schemaName)
    this.keys = new KeyPruning(database, schema)
    this.records = new RecordPruning(database, schema)
    this.rows = { name: 'lh_prune', text: rowsText(schema) }
  }

  /** Whatever fails keeps nothing else from being pruned. It is told when all that can be done has been. */
  async prune(options: Retention & { limit: number }): Promise<{ deleted: number; more: boolean }> {
    const parts: Part[] = []
    for (const [doing, work] of this.duties(options)) {
      const done = await part(doing, work)
      parts.push(done)
      if (done.failure !== undefined && isOutage(done.failure)) break
    }
    const more = parts.some((each) => each.more)
    const failure = parts.find((each) => each.failure !== undefined)?.failure
    if (failure !== undefined && !more) throw failure
    return { deleted: parts.reduce((sum, each) => sum + each.deleted, 0), more }
  }

  private duties(options: Retention & { limit: number }): [doing: string, work: () => Promise<Part>][] {
    return [
      ['make the days ahead', () => this.makeDays()],
      ['prune', () => this.pruneRows(options)],
      ['prune keys', () => this.pruneKeys(options.limit)],
      ['prune days', () => this.pruneDays(options.completedMs)],
      ['prune records', () => this.records.prune(options)],
    ]
  }

  private async makeDays(): Promise<Part> {
    await this.database.run(this.ensureDays, [])
    return { deleted: 0, more: false }
  }

  private async pruneRows({ deadMs, limit }: Retention & { limit: number }): Promise<Part> {
    const [row] = await this.database.run(this.rows, [deadMs * 1_000, limit])
    const { dead, keys, fences, workers, permits } = row as Record<string, number>
    return { deleted: dead! + keys! + fences! + workers!, more: Math.max(dead!, fences!, permits!) >= limit }
  }

  private async pruneKeys(limit: number): Promise<Part> {
    const deleted = await this.keys.prune(limit)
    return { deleted, more: deleted >= limit }
  }

  private async pruneDays(completedMs: number): Promise<Part> {
    const { dropped, failure } = await this.days.prune(completedMs)
    return { deleted: dropped, more: false, failure }
  }
}

async function part(doing: string, work: () => Promise<Part>): Promise<Part> {
  try {
    return await work()
  } catch (error) {
    return { deleted: 0, more: false, failure: queueError(error, doing) }
  }
}

/** The store cannot be used at all, as the other parts would find, too. */
function isOutage({ cause }: Error): boolean {
  return failureKind(cause ?? {}) !== 'refused'
}

/** $1 the age of dead letters in microseconds, $2 the limit. A letter takes a key along whose retention is over. */
function rowsText(schema: string): string {
  return `with d as (delete from ${schema}.dead where ctid = any(array(select ctid from ${schema}.dead
      where ended < ${schema}.instant(${schema}.clock() - $1::bigint) order by ended limit $2 for update skip locked)) returning id, queue, kind, spec),
    i as (delete from ${schema}.idempotency where ctid = any(array(select i.ctid from d join ${schema}.idempotency i
      on i.kind = d.kind and i.key = d.spec ->> 'idempotencyKey' and i.id = d.id and i.expires <= ${schema}.clock() for update of i skip locked)) returning 1),
    r as (delete from ${schema}.revoked where ctid = any(array(select ctid from ${schema}.revoked
      where at < ${schema}.clock() - ${DEAD_FENCE_MS * 1_000} order by at limit $2 for update skip locked)) returning 1),
    w as (delete from ${schema}.worker where ctid = any(array(select w.ctid from ${schema}.worker w where w.seen = 0
      and not exists (select from ${schema}.lease l where l.worker = w.id) for update skip locked)) returning 1),
    k as (delete from ${schema}.idle where ctid = any(array(select ctid from ${schema}.idle
      where until < ${schema}.clock() - 60000000 limit $2 for update skip locked)) returning 1)
    -- First, as keys come before marks of idle workers in the order of locks.
    select ${lettersReleased(schema, 'd')} as released, (select count(*) from d)::int as dead, (select count(*) from i)::int as keys, (select count(*) from r)::int as fences,
      (select count(*) from w)::int + (select count(*) from k)::int as workers,
      ${schema}.prune_permits($2::int) as permits`
}
