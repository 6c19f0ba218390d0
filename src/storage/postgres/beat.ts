/** Beats, take-over and good-byes. Called through the port, and by the thread that beats (see heartbeat-source.ts). */
import type { Beat, BeatAnswer, RecoveredLease, TakeOver } from '../storage.js'
import { decodeLeases, type WireLease } from './claim.js'
import { microseconds, plainArray, queueOfLane, textArray } from './codec.js'
import type { Database, Statement } from './database.js'
import type { Queues } from './queues.js'
import type { Settle } from './settle.js'

/** Payload bytes of one take-over, beyond its first lease: one answer stays far below what a string can hold. */
const TAKE_OVER_BYTES_MAX = 8_388_608

/** A store under load is no dead connection, however short the beat. */
const BEAT_MS_MIN = 250

const STATUSES: readonly BeatAnswer['status'][] = ['ok', 'stale', 'gone']

export class Beats {
  private readonly statement: Statement
  private readonly goodBye: Statement

  constructor(
    private readonly database: Database,
    private readonly settle: Settle,
    schema: string,
  ) {
    this.statement = {
      name: 'lh_beat',
      text: `select status, lost, cancel, paused from ${schema}.beat_worker($1, $2, $3, $4::bigint[], $5, $6, $7, $8, $9, $10::text[])`,
    }
    this.goodBye = { name: 'lh_unregister', text: `select ${schema}.unregister($1)` }
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    const values = [
      beat.worker,
      beat.n,
      beat.known,
      plainArray(beat.leases),
      JSON.stringify(beat.started),
      microseconds(beat.mainLagMs),
      microseconds(beat.info.leaseMs),
      microseconds(beat.info.beatMs),
      JSON.stringify(beat.info),
      textArray(beat.info.queues),
    ]
    // Beyond an interval nobody waits for it, and the next one needs the connection.
    const timeoutMs = Math.max(BEAT_MS_MIN, beat.info.beatMs)
    const rows = await this.settle.withDays('beat', () => this.database.run(this.statement, values, timeoutMs))
    const row = rows[0] as {
      status: number
      lost: string[] | null
      cancel: [number, number][] | null
      paused: string[] | null
    }
    return {
      status: STATUSES[row.status]!,
      lost: (row.lost ?? []).map(Number),
      cancel: row.cancel ?? [],
      paused: row.paused ?? [],
    }
  }

  async unregister(worker: string): Promise<void> {
    await this.settle.withDays('unregister', () => this.database.run(this.goodBye, [worker]))
  }
}

type WireRecovered = [
  lease: WireLease,
  crash: { worker: string; at: number },
  open: string,
  started: string,
  cancelled: string,
]

export class TakeOverOperation {
  private readonly statement: Statement

  constructor(
    private readonly database: Database,
    private readonly queues: Queues,
    private readonly settle: Settle,
    schema: string,
  ) {
    this.statement = {
      name: 'lh_take_over',
      text: `select leases, now_us::float8 from ${schema}.take_over($1, $2, ${TAKE_OVER_BYTES_MAX})`,
    }
  }

  async takeOver(request: { worker: string; limit: number }): Promise<TakeOver> {
    const rows = await this.settle.withDays('take over', () =>
      this.database.run(this.statement, [request.worker, request.limit]),
    )
    const { leases, now_us: nowUs } = rows[0] as { leases: string | null; now_us: number }
    const text = leases ?? '[]'
    const wire = JSON.parse(text) as WireRecovered[]
    await this.queues.learn(wire.flatMap(([[, , , jobs]]) => jobs.map((job) => queueOfLane(job[2]))))
    return { leases: wire.map((recovered) => this.decoded(recovered, text)), nowMs: nowUs / 1_000 }
  }

  private decoded([wire, crash, open, started, cancelled]: WireRecovered, text: string): RecoveredLease {
    const [lease] = decodeLeases([wire], (id) => this.queues.name(id), text)
    const crashes = lease!.jobs.map((_, ordinal) =>
      open[ordinal] === '1'
        ? {
            worker: crash.worker,
            started: started[ordinal] === '1',
            alone: lease!.alone,
            cancelled: cancelled[ordinal] === '1',
          }
        : null,
    )
    return { ...lease!, crashes }
  }
}
