/** Worker rows: who is registered, alive, steady. Written by beats; read by claims and take-over. */
import type { Beat, WorkerInfo } from '../storage.js'

export interface WorkerRow {
  readonly id: string
  readonly registeredAt: number
  info: WorkerInfo
  /** Of the newest beat. */
  n: number
  lastBeatAt: number
  mainLagMs: number
  /** What the newest beat told of starts. */
  started: Beat['started']
  /** Since when its beats have come without a gap. */
  steadySince: number
  /** The last claim request of which a beat told that it was answered, or given up. */
  known: number
  /** Claim requests that took something. */
  readonly taken: Set<number>
}

export class WorkerTable {
  private readonly rows = new Map<string, WorkerRow>()

  get(id: string): WorkerRow | undefined {
    return this.rows.get(id)
  }

  all(): WorkerRow[] {
    return [...this.rows.values()]
  }

  register(beat: Beat, now: number): WorkerRow {
    const row: WorkerRow = {
      id: beat.worker,
      registeredAt: now,
      info: structuredClone(beat.info),
      n: beat.n,
      lastBeatAt: now,
      mainLagMs: beat.mainLagMs,
      started: structuredClone(beat.started),
      steadySince: now,
      known: beat.known,
      taken: new Set(),
    }
    this.rows.set(row.id, row)
    return row
  }

  delete(id: string): void {
    this.rows.delete(id)
  }
}

/** Writes a beat down: a newer one, or the newest once more. */
export function keepAlive(row: WorkerRow, beat: Beat, now: number): void {
  if (hasGap(row, now)) row.steadySince = now
  row.lastBeatAt = now
  row.mainLagMs = beat.mainLagMs
  row.started = structuredClone(beat.started)
  row.known = Math.max(row.known, beat.known)
  for (const request of row.taken) if (request <= row.known) row.taken.delete(request)
  row.n = beat.n
  row.info = structuredClone(beat.info)
}

/** Its beats, or its main loop, have been silent for more than a lease. */
export function isDead(row: WorkerRow, now: number): boolean {
  return now - mainSeenAt(row) > row.info.leaseMs
}

/** Its main loop, by the newest beat. */
export function mainSeenAt({ lastBeatAt, mainLagMs }: WorkerRow): number {
  return lastBeatAt - mainLagMs
}

/**
 * It may judge others: it has itself reached the store without a gap for one whole lease. After an outage nobody has,
 * so nobody takes over from everybody.
 */
export function isSteady(row: WorkerRow, now: number): boolean {
  return !hasGap(row, now) && now - row.steadySince >= row.info.leaseMs
}

function hasGap(row: WorkerRow, now: number): boolean {
  return now - row.lastBeatAt > 2 * row.info.beatMs
}
