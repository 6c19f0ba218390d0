/** Claims jobs and takes settlements along, in one round trip. Called by the fetcher through the port. */
import type { Env } from '../../core/env.js'
import { AGEING_INTERVAL_MS, TIER_PATTERN } from '../../core/priority.js'
import type { Claim, ClaimRequest, Lease } from '../storage.js'
import { decodeJob, isFairLane, microseconds, plainArray, textArray, type WireJob } from './codec.js'
import { Cursors, type Promoted } from './cursors.js'
import type { Database, Row, Statement } from './database.js'
import type { Queues } from './queues.js'
import { decodeAnswers, type Settle, settlementArrays } from './settle.js'

/** How long the mark of an idle worker lasts, in polls: so that hints never stop coming between two of them. */
const IDLE_MARK_POLLS = 3
/** Payload bytes of one claim, beyond its first job. */
const CLAIM_BYTES_MAX = 8_388_608
/** Virtual times come as floating numbers, which are off by less than this. */
const FAIR_MARGIN = 4_096

/** Workers of one process whose cursors are remembered. */
const WORKERS_MAX = 32

export type WireLease = [fence: number, alone: boolean, claimed: number, jobs: WireJob[]]

export class ClaimOperation {
  private readonly statement: Statement
  /** Each worker reads kinds of its own: what it passes over another has to find. */
  private readonly cursorsOf = new Map<string, Cursors>()

  constructor(
    private readonly database: Database,
    private readonly queues: Queues,
    private readonly settle: Settle,
    private readonly promoted: Promoted,
    private readonly env: Env,
    schema: string,
  ) {
    this.statement = {
      name: 'lh_claim',
      // A server that was demoted would find nothing, and may say that a worker is gone that it does not know: asked to
      // write, it says what it is instead.
      text: `select status, leases, settled, more, next_due::float8, paused, now_us::float8, limited, next_token::float8, fair_lanes, fair_served,
        case when current_setting('transaction_read_only')::boolean then nextval('${schema.replaceAll("'", "''")}.fence') end from ${schema}.claim_jobs($1, $2, $3::int[], $4::int[], $5::bigint[], $6,
        $7::text[], $8::text[], $9, $10::int[], $11, $12::int[], $13::bigint[], $14, $15, $16, $17::bigint[], $18::int[], $19::int[], $20::boolean[],
        $21::bigint[], $22::bigint[], $23::bigint[], $24::text[], $25::json[], $26::json[])`,
    }
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const ids = await Promise.all(request.queues.map((queue) => this.queues.id(queue.queue)))
    const cursors = this.cursors(request)
    const sweep = cursors.sweepDue()
    const first = await this.send(request, ids, sweep, request.finished ?? [])
    // Something may have committed behind the cursor, a caller's slow transaction for one: look once from the start.
    const nothing = first.leases.length === 0 && !first.more && first.limited.length === 0 && first.status === 'ok'
    const again = nothing && !sweep && cursors.sweepAllowed()
    if (!again) return first
    const second = await this.send(request, ids, true, [])
    return { ...second, settled: first.settled }
  }

  private async send(
    request: ClaimRequest,
    ids: number[],
    sweep: boolean,
    finished: NonNullable<ClaimRequest['finished']>,
  ): Promise<Claim> {
    const began = this.env.monotonic()
    const values = this.values(request, ids, sweep, finished)
    const rows = await this.settle.withDays('claim', () => this.database.work(this.statement, values))
    const cursors = this.cursors(request)
    if (sweep) cursors.swept(this.env.monotonic() - began)
    return this.decoded(rows[0]!, ids, cursors, sweep)
  }

  private values(
    request: ClaimRequest,
    ids: number[],
    sweep: boolean,
    finished: NonNullable<ClaimRequest['finished']>,
  ): unknown[] {
    const { lanes, positions } = sweep ? { lanes: [], positions: [] } : this.cursors(request).current()
    return [
      request.worker,
      request.request,
      plainArray(ids),
      plainArray(request.queues.map((queue) => queue.share)),
      plainArray(request.queues.map((queue) => queue.turn)),
      request.limit,
      textArray(request.kinds),
      textArray(request.apart),
      AGEING_INTERVAL_MS * 1_000,
      plainArray(TIER_PATTERN),
      request.suspects,
      plainArray(lanes),
      plainArray(positions),
      sweep ? 0 : this.promoted.sinceUs,
      microseconds(IDLE_MARK_POLLS * request.pollMs),
      CLAIM_BYTES_MAX,
      ...settlementArrays(finished),
    ]
  }

  private decoded(row: Row, ids: number[], cursors: Cursors, sweep: boolean): Claim {
    const nowUs = row.now_us as number
    const text = (row.leases as string | null) ?? '[]'
    const wire = JSON.parse(text) as WireLease[]
    const leases = decodeLeases(wire, (id) => this.queues.name(id), text)
    const more = row.more as boolean
    const paused = row.paused as number[]
    const served = servedOf(row)
    for (const [lane, taken] of lastTaken(wire)) {
      // What comes into a fair list may stand before what was just taken, but not before what is being served.
      const pos = isFairLane(lane) ? Math.max(0, Math.min(taken, served.get(lane) ?? 0) - FAIR_MARGIN) : taken
      if (sweep && more) cursors.returned(lane, pos)
      else cursors.reached(lane, pos)
    }
    // Nothing was looked for in paused queues, and not all of what is there where a limit is used up.
    const limited = (row.limited as number[] | null) ?? []
    const looked = ids.filter((id) => !paused.includes(id) && !limited.includes(id))
    if (!more && row.status === 'ok' && !leases.some((lease) => lease.alone)) cursors.exhausted(looked, nowUs)
    return {
      status: row.status as Claim['status'],
      leases,
      settled: decodeAnswers(row.settled as number[] | null),
      more,
      nextDueMs: row.next_due === null ? null : Math.max(0, (row.next_due as number) / 1_000),
      paused: paused.map((id) => this.queues.name(id)),
      limited: limited.map((id) => this.queues.name(id)),
      nextTokenMs: row.next_token === null ? null : Math.max(0, (row.next_token as number) / 1_000),
      nowMs: nowUs / 1_000,
    }
  }

  private cursors({ worker, kinds }: ClaimRequest): Cursors {
    const key = `${worker} ${kinds.join(' ')}`
    const known = this.cursorsOf.get(key)
    if (known !== undefined) return known
    const made = new Cursors(this.env)
    this.cursorsOf.set(key, made)
    // Workers come and go; who was forgotten starts with a sweep.
    if (this.cursorsOf.size > WORKERS_MAX) this.cursorsOf.delete(this.cursorsOf.keys().next().value!)
    return made
  }
}

/** The last position taken from each lane. A suspect's lane has no cursor. */
function lastTaken(wire: WireLease[]): Map<number, number> {
  const last = new Map<number, number>()
  for (const [, alone, , jobs] of wire)
    for (const [, , lane, pos] of alone ? [] : jobs) last.set(lane, Math.max(last.get(lane) ?? 0, pos))
  return last
}

/** Of each fair list that was read: the virtual time up to which it was claimed. */
function servedOf(row: Row): Map<number, number> {
  const lanes = (row.fair_lanes as number[] | null) ?? []
  const served = (row.fair_served as number[] | null) ?? []
  return new Map(lanes.map((lane, at) => [lane, served[at]!]))
}

export function decodeLeases(wire: WireLease[], nameOf: (queueId: number) => string, text: string): Lease[] {
  return wire.map(([fence, alone, claimedUs, jobs]) => ({
    fence,
    alone,
    jobs: jobs.map((job) => decodeJob(job, claimedUs, nameOf, text)),
  }))
}
