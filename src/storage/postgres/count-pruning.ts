/**
 * Keeps of each queue the newest so many records. Where the kept ones end is found once, by walking over them; then what
 * lies beyond is deleted in steps that cost what they delete. Called by record-pruning.ts.
 */
import { plainArray } from './codec.js'
import type { Database, Statement } from './database.js'
import { lettersReleased } from './functions/keys.js'

/** Of a queue and state: the newest record that is too many, and up to where the older ones were deleted. */
interface Border {
  queue: number
  state: number
  us: string
  id: string
  sinceUs: string
}

interface Deleted {
  deleted: number
  reached: { queue: number; state: number; us: string }[]
}

export interface CountedTable {
  name: 'ended' | 'dead'
  /** Each is counted for itself. */
  states: readonly number[]
  /** Which records of the table `e` are of the state `s.state`. */
  ofState: string
}

export class CountPruning {
  private readonly find: Statement
  private readonly step: Statement
  /** Found for so many that are kept, and not yet worked off. */
  private found: { max: number; borders: Border[] } | undefined

  constructor(
    private readonly database: Database,
    schema: string,
    table: CountedTable,
  ) {
    this.find = { name: `lh_prune_border_${table.name}`, text: borderText(schema, table) }
    this.step = { name: `lh_prune_counted_${table.name}`, text: stepText(schema, table) }
  }

  /** Deletes at most `limit` records; how many. What is locked by somebody at this moment is left to the next round. */
  async prune(max: number, limit: number): Promise<number> {
    if (this.found?.max !== max) this.found = { max, borders: await this.borders(max) }
    const { borders } = this.found
    if (borders.length === 0) {
      this.found = undefined
      return 0
    }
    const { deleted, reached } = await this.delete(borders, limit)
    if (deleted < limit) this.found = undefined
    for (const { queue, state, us } of reached)
      for (const border of borders) if (border.queue === queue && border.state === state) border.sinceUs = us
    return deleted
  }

  private async borders(max: number): Promise<Border[]> {
    return (await this.database.run(this.find, [max])) as unknown as Border[]
  }

  private async delete(borders: readonly Border[], limit: number): Promise<Deleted> {
    const of = (key: keyof Border): string => plainArray(borders.map((border) => border[key]))
    const values = [of('queue'), of('state'), of('us'), of('id'), of('sinceUs'), limit]
    const [row] = await this.database.run(this.step, values)
    return row as unknown as Deleted
  }
}

/** $1 how many are kept. */
function borderText(schema: string, { name, states, ofState }: CountedTable): string {
  const values = states.map((state) => `(${state})`).join(', ')
  return `select q.id as queue, s.state, ${us('b.ended')}::text as us, b.id, '0' as "sinceUs"
    from ${schema}.queue q cross join (values ${values}) s(state),
      lateral (select e.id, e.ended from ${schema}.${name} e
        where e.queue = q.id and ${ofState} order by e.ended desc, e.id desc offset $1 limit 1) b`
}

/**
 * $1 to $5 the borders, $6 the limit. From where the step before came to: behind an old snapshot what is deleted would be
 * walked over again and again. By id, each an index probe; what somebody else deletes at this moment is passed over, so that
 * two pruners never wait for each other.
 */
function stepText(schema: string, { name, ofState }: CountedTable): string {
  return `with r as materialized (select s.queue, s.state, r.id, r.ended
      from (select u.queue, u.state, u.id, ${schema}.instant(u.us) as ended, ${schema}.instant(u.since) as since
          from unnest($1::int[], $2::int[], $3::bigint[], $4::uuid[], $5::bigint[]) u(queue, state, us, id, since)) s,
        lateral (select e.id, e.ended from ${schema}.${name} e
          where e.queue = s.queue and ${ofState} and e.ended >= s.since and e.ended <= s.ended and (e.ended, e.id) <= (s.ended, s.id)
          order by e.ended limit $6 for update skip locked) r limit $6),
    o as materialized (select coalesce(array_agg(r.id), '{}') as ids, max(r.ended) as latest from r),
    d as (delete from ${schema}.${name} e using o where e.id = any(o.ids) and e.ended <= o.latest returning ${name === 'dead' ? 'e.id, e.queue, e.spec' : '1'})
    select (select count(*) from d)::int as deleted, ${name === 'dead' ? `${lettersReleased(schema, 'd')} as released, ` : ''}coalesce((select json_agg(json_build_object('queue', g.queue, 'state', g.state, 'us', g.us::text))
      from (select r.queue, r.state, ${us('max(r.ended)')} as us from r group by r.queue, r.state) g), '[]') as reached`
}

function us(instant: string): string {
  return `(extract(epoch from ${instant}) * 1000000)::bigint`
}
