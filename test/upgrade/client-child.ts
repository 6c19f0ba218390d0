/** A worker or a producer of any release, in a process of its own. What it did goes to a file that outlives it. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a test tells it, as JSON in the first argument. */
export interface ClientSettings {
  /** For the lines that it writes. */
  name: string
  /** The main module of the client that it is: of this tree, or of a kept release. */
  entry: string
  role: 'worker' | 'producer'
  url: string
  schema: string
  effects: string
  connect?: Record<string, unknown>
  options?: Record<string, unknown>
}

/** Queues of the kept jobs, and the one that producers fill. */
const QUEUES = ['fresh', 'q', 'suspects', 'paused', 'draining', 'strict', 'weighted', 'held']
/** Few at once, so that the work goes on while the schema changes. */
const PACE_MS = 10

const settings = JSON.parse(process.argv[2]!) as ClientSettings
const write = (line: string): void => appendFileSync(settings.effects, `${settings.name} ${line}\n`)
const { connect, defineJob, worker } = (await import(settings.entry)) as typeof import('../../src/index.js')
const queue = await connect(settings.url, { schema: settings.schema, migrate: false, ...settings.connect })
const fresh = defineJob('fresh', { queue: 'fresh' })
const stopped = new AbortController()

await (settings.role === 'worker' ? work() : produce())
await queue.close()
process.disconnect?.()

async function work(): Promise<void> {
  const kinds = [fresh, defineJob('work', { queue: 'q' }), defineJob('other', { queue: 'q' })]
  const ran = async (_: unknown, { id, attempt }: { id: string; attempt: number }): Promise<void> => {
    await sleep(PACE_MS)
    write(`ran ${id} ${attempt}`)
  }
  const running = worker(
    queue,
    kinds.map((kind) => kind.handle(ran)),
    { concurrency: 4, queues: QUEUES, lease: '5s', beat: '1s', completedRetention: '30d', ...settings.options },
  )
  queue.connection.events.on((event) => {
    if (!event.type.startsWith('job.')) write(`event ${JSON.stringify(event)}`)
  })
  const ended = running.run()
  process.send?.('up')
  await ended
}

async function produce(): Promise<void> {
  process.once('SIGTERM', () => stopped.abort())
  process.send?.('up')
  for (let n = 0; !stopped.signal.aborted; n++) {
    // Now and then one of those that are stored in another way.
    const options = n % 5 === 0 ? { delay: '20ms' } : n % 5 === 1 ? { idempotencyKey: `${settings.name} ${n}` } : {}
    const { id } = await queue.enqueue(fresh, undefined, options)
    write(`sent ${id}`)
    await sleep(PACE_MS)
  }
}
