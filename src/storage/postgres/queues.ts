/** Names of queues and their numbers, remembered. Called by all operations of this adapter that name a queue. */
import type { Database, Statement } from './database.js'
import { queueError } from './failures.js'

/** What a queue has to be marked with before a job comes in. */
export interface Marks {
  /** Its level has a fair list. */
  fair: boolean
  /** It has jobs with keys. */
  keyed: boolean
}

const NO_MARKS: Marks = { fair: false, keyed: false }

export class Queues {
  private readonly ids = new Map<string, number>()
  private readonly names = new Map<number, string>()
  /** Levels of each queue that are known to be marked as used. */
  private readonly levels = new Map<string, number>()
  /** Levels of each queue that are known to have a fair list. */
  private readonly fair = new Map<string, number>()
  /** Queues that are known to be marked as ones with keys. */
  private readonly keyed = new Set<string>()
  /** Numbers whose names were learnt since the last loss of connections. */
  private readonly fresh = new Set<number>()
  private generation = 0
  private readonly ensureStatement: Statement
  private readonly fairStatement: Statement
  private readonly keyedStatement: Statement
  private readonly namesStatement: Statement
  private readonly findStatement: Statement

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.ensureStatement = { name: 'lh_ensure_queue', text: `select ${schema}.ensure_queue($1, $2) as id` }
    this.fairStatement = { name: 'lh_ensure_fair', text: `select ${schema}.ensure_fair($1, $2)` }
    this.keyedStatement = { name: 'lh_ensure_keyed', text: `select ${schema}.ensure_keyed($1)` }
    this.namesStatement = { name: 'lh_queues', text: `select id, name from ${schema}.queue where id = any($1::int[])` }
    this.findStatement = { name: 'lh_find_queue', text: `select id from ${schema}.queue where name = $1` }
  }

  /** The number of a queue whose level is marked as used, and as fair where it must be, when that is known without asking the store. */
  known(name: string, level: number, { fair, keyed }: Marks = NO_MARKS): number | undefined {
    this.forgetOld()
    if (keyed && !this.keyed.has(name)) return undefined
    const marked = fair ? this.fair : this.levels
    return ((marked.get(name) ?? 0) >> level) & 1 ? this.ids.get(name) : undefined
  }

  /** As `known`, and makes what is missing; always in a transaction of its own, as a caller's may stay open for long. */
  async ensure(name: string, level: number, marks: Marks = NO_MARKS): Promise<number> {
    const known = this.known(name, level, marks)
    if (known !== undefined) return known
    const [row] = await this.database.run(this.ensureStatement, [name, level])
    const id = row!.id as number
    this.remember(id, name)
    this.levels.set(name, (this.levels.get(name) ?? 0) | (1 << level))
    if (marks.fair) {
      await this.database.run(this.fairStatement, [id, level])
      this.fair.set(name, (this.fair.get(name) ?? 0) | (1 << level))
    }
    if (marks.keyed) {
      await this.database.run(this.keyedStatement, [id])
      this.keyed.add(name)
    }
    return id
  }

  /** The number of a queue, made if missing. */
  async id(name: string): Promise<number> {
    this.forgetOld()
    const known = this.ids.get(name)
    if (known !== undefined) return known
    try {
      return await this.ensure(name, 4)
    } catch (error) {
      throw queueError(error, 'look the queue up')
    }
  }

  /** The number of a queue, for who only looks: null where nobody has seen it yet, and none is made. */
  async find(name: string): Promise<number | null> {
    this.forgetOld()
    const known = this.ids.get(name)
    if (known !== undefined) return known
    const [row] = await this.database.ask(this.findStatement, [name])
    if (row === undefined) return null
    this.remember(row.id as number, name)
    return row.id as number
  }

  name(id: number): string {
    const name = this.names.get(id)
    if (name === undefined) throw new Error(`invariant broken: queue ${id} was not looked up`)
    return name
  }

  /** Learns the names of these queues, so that `name` knows them. */
  async learn(ids: Iterable<number>): Promise<void> {
    this.forgetOld()
    const missing = [...new Set(ids)].filter((id) => !this.fresh.has(id))
    if (missing.length === 0) return
    const rows = await this.database.ask(this.namesStatement, [`{${missing.join(',')}}`])
    for (const row of rows) this.remember(row.id as number, row.name as string)
  }

  private remember(id: number, name: string): void {
    this.ids.set(name, id)
    this.names.set(id, name)
    this.fresh.add(id)
  }

  /** A server that took over for a lost one may never have heard of a new queue, and give its number to another. */
  private forgetOld(): void {
    if (this.generation === this.database.generation) return
    this.generation = this.database.generation
    this.ids.clear()
    this.levels.clear()
    this.fair.clear()
    this.keyed.clear()
    this.fresh.clear()
  }
}
