/** Where it is measured: a schema of its own for each scenario, removed with all that is in it. Called by bench.ts. */
import type { Queue } from '../../client/queue.js'
import { connect } from '../../connect.js'
import { TEMPORARY_PREFIX, TemporarySchemas } from '../../storage/postgres/drop-schema.js'

export interface Place {
  readonly url: string
  readonly schema: string
  readonly queue: Queue
}

/** The time in the name says how old one is that a killed run has left. */
const LEFT_AFTER_MS = 3_600_000

export class Places {
  private readonly schemas: TemporarySchemas
  private made = 0

  constructor(
    private readonly url: string,
    private readonly nowMs: number,
  ) {
    this.schemas = new TemporarySchemas(url)
  }

  /** What a run that was killed has left. */
  async left(): Promise<string[]> {
    const names = await this.schemas.list()
    return names.filter((name) => this.nowMs - madeAt(name) > LEFT_AFTER_MS)
  }

  /** Runs `work` in a new schema; the schema goes, however the work ends. */
  async within<T>(work: (place: Place) => Promise<T>): Promise<T> {
    const schema = `${TEMPORARY_PREFIX}${this.nowMs.toString(36)}_${process.pid}_${this.made++}`
    try {
      const queue = await connect(this.url, { schema })
      try {
        return await work({ url: this.url, schema, queue })
      } finally {
        await queue.close()
      }
    } finally {
      await this.schemas.drop(schema)
    }
  }

  close(): Promise<void> {
    return this.schemas.close()
  }
}

function madeAt(name: string): number {
  const stamp = Number.parseInt(name.slice(TEMPORARY_PREFIX.length).split('_')[0]!, 36)
  return Number.isNaN(stamp) ? 0 : stamp
}
