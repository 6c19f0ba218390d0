/** Settlements as arrays, and answers back. Called by the settler through the port, and by claim.ts for those that ride along. */
import { QueueError } from '../../core/errors.js'
import type { SettleAnswer, Settlement } from '../storage.js'
import { microseconds, plainArray, textArray } from './codec.js'
import type { Database, Statement } from './database.js'
import { ensureDays } from './day-pruning.js'
import { failureKind, queueError, sqlState } from './failures.js'
import { historyText } from './odd-text.js'

const FATES = { completed: 1, delayed: 2, ready: 3, dead: 4, cancelled: 5, started: 6 } as const
const ANSWERS: readonly SettleAnswer[] = ['ok', 'already', 'lost', 'cancelled']
/** "no partition of relation found for row": the day of today is not there yet. */
const NO_DAY = '23514'

export class Settle {
  private readonly statement: Statement
  private readonly days: Statement

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.statement = {
      name: 'lh_settle',
      text: `select ${schema}.settle($1::bigint[], $2::int[], $3::int[], $4::boolean[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::json[], $10::json[]) as answers`,
    }
    this.days = ensureDays(schema)
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    if (settlements.length === 0) return []
    const rows = await this.withDays('settle', () => this.database.work(this.statement, settlementArrays(settlements)))
    return decodeAnswers(rows[0]!.answers as number[])
  }

  /** Runs a statement that may write records; where it finds no table for the day, makes it and tries again. */
  async withDays<T>(doing: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (failureKind(error) !== 'refused' || sqlState(error) !== NO_DAY) throw queueError(error, doing)
    }
    try {
      await this.database.run(this.days, [])
    } catch (error) {
      throw withoutDay(error, doing)
    }
    try {
      return await run()
    } catch (error) {
      throw queueError(error, doing)
    }
  }
}

/** No fault of what was to be stored, whatever the server says: to be tried again as it is. */
function withoutDay(error: unknown, doing: string): QueueError {
  const said = error instanceof Error ? error.message : String(error)
  return new QueueError('STORE_UNAVAILABLE', `${doing}: the table for the records of today cannot be made: ${said}`, {
    cause: error,
  })
}

export function decodeAnswers(answers: number[] | null): SettleAnswer[] {
  return (answers ?? []).map((answer) => ANSWERS[answer]!)
}

/** The ten arrays that the SQL functions take, in their order. */
export function settlementArrays(settlements: readonly Settlement[]): (string | null)[] {
  return [
    plainArray(settlements.map((s) => s.fence)),
    plainArray(settlements.map((s) => s.ordinal)),
    plainArray(settlements.map((s) => FATES[s.to])),
    plainArray(settlements.map(flag)),
    unlessNothing(
      plainArray,
      settlements.map((s) => (s.to === 'delayed' ? microseconds(s.delayMs) : null)),
    ),
    unlessNothing(
      plainArray,
      settlements.map((s) =>
        s.to !== 'started' && s.startedAfterMs !== undefined ? microseconds(s.startedAfterMs) : null,
      ),
    ),
    unlessNothing(
      plainArray,
      settlements.map((s) => (s.to !== 'started' && s.ranMs !== undefined ? microseconds(s.ranMs) : null)),
    ),
    unlessNothing(
      textArray,
      settlements.map((s) => (s.to === 'dead' ? s.reason : null)),
    ),
    unlessNothing(textArray, settlements.map(history)),
    unlessNothing(
      textArray,
      settlements.map((s) => (s.to === 'completed' ? (s.result ?? null) : null)),
    ),
  ]
}

/** Mostly some of the arrays hold nulls alone: those are not sent, as `unnest` fills up what is too short. */
function unlessNothing<T>(literal: (values: readonly (T | null)[]) => string, values: (T | null)[]): string | null {
  return values.every((value) => value === null) ? null : literal(values)
}

function flag(settlement: Settlement): boolean {
  if (settlement.to === 'completed') return settlement.keep
  return (settlement.to === 'delayed' || settlement.to === 'ready') && settlement.suspect
}

function history(settlement: Settlement): string | null {
  return settlement.to === 'started' || settlement.history === null ? null : historyText(settlement.history)
}
