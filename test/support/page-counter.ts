/** What statements cost in pages, told by the server itself: a figure that no load on the machine changes. */
import assert from 'node:assert/strict'
import pg from 'pg'
import { openPostgres, type PostgresStorage } from '../../src/storage/postgres/index.js'
import type { Scratch } from './postgres.js'

/** The same store by one connection that tells how many pages each statement touched, functions and all. */
export class PageCounter {
  private pages = 0
  private readonly pool: pg.Pool
  readonly storage: PostgresStorage

  constructor(of: Scratch) {
    this.pool = new pg.Pool({ connectionString: of.url, max: 1 })
    this.pool.on('connect', (client) => {
      client.on('notice', ({ message }) => this.told(message ?? ''))
      void client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
        set auto_explain.log_buffers = on; set auto_explain.log_timing = off; set client_min_messages = log`)
    })
    this.storage = openPostgres({ pool: this.pool, schema: of.schema })
  }

  /** The first line of buffers is that of the whole statement. */
  private told(plan: string): void {
    const [line] = /Buffers:.*/.exec(plan) ?? []
    for (const [, count] of line?.matchAll(/(?:hit|read)=(\d+)/g) ?? []) this.pages += Number(count)
  }

  /** Of several runs the middle one: the first makes plans, another may meet a page that is full. */
  async of(run: () => Promise<unknown>): Promise<number> {
    const counts: number[] = []
    for (let n = 0; n < 7; n++) counts.push(await this.once(run))
    return counts.toSorted((a, b) => a - b)[3]!
  }

  async once(run: () => Promise<unknown>): Promise<number> {
    this.pages = 0
    await run()
    assert.ok(this.pages > 0, 'the server told of no pages')
    return this.pages
  }

  async close(): Promise<void> {
    await this.storage.close()
    await this.pool.end()
  }
}
