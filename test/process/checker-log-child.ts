/** A worker in a process of its own that logs everything, and enqueues the jobs as well if it is told to. */
import { connect, dead, defineJob, retryAfter, snooze, worker } from '../../src/index.js'

export interface LogChildSettings {
  url: string
  schema: string
  enqueues: number
}

const retry = { attempts: 3, backoff: { base: '20ms' } } as const
const kinds = {
  good: defineJob<number>('log.good'),
  failing: defineJob<number>('log.failing', { retry }),
  hopeless: defineJob<number>('log.hopeless', { retry }),
  snoozed: defineJob<number>('log.snoozed'),
  postponed: defineJob<number>('log.postponed', { retry }),
  rejected: defineJob<number>('log.rejected'),
  late: defineJob<number>('log.late', { timeout: '1s', retry }),
  keyed: defineJob<number>('log.keyed', { idempotencyKey: (n) => `key-${n}` }),
  long: defineJob<number>('log.long', { retry }),
}

const { url, schema, enqueues } = JSON.parse(process.argv[2]!) as LogChildSettings
const queue = await connect(url, { schema, log: { level: 'debug' } })
const snoozedOnce = new Set<string>()

const running = worker(
  queue,
  [
    kinds.good.handle(() => {}),
    kinds.failing.handle((_, { attempt }) => {
      if (attempt < 3) throw new Error(`attempt ${attempt} fails`)
    }),
    kinds.hopeless.handle(() => {
      throw new Error('as always')
    }),
    kinds.snoozed.handle((_, { id }) => {
      if (snoozedOnce.has(id)) return undefined
      snoozedOnce.add(id)
      return snooze('50ms')
    }),
    kinds.postponed.handle((_, { attempt }) => (attempt === 1 ? retryAfter('30ms') : undefined)),
    kinds.rejected.handle(() => dead('no such user')),
    kinds.late.handle(async (_, { attempt, signal }) => {
      if (attempt === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }),
    kinds.keyed.handle(() => {}),
    // Killed in its first attempt.
    kinds.long.handle(async (_, { attempt, signal }) => {
      if (attempt === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }),
  ],
  { concurrency: 8, lease: '2s', beat: '300ms', shutdownGrace: '1s' },
)
await running.start()
process.once(
  'message',
  () =>
    void running
      .stop()
      .then(() => queue.close())
      .then(() => process.disconnect()),
)
/** Of the jobs that there are then; keyed ones come twice. */
let jobs = 0
for (let n = 0; n < enqueues; n++)
  for (const kind of Object.values(kinds)) {
    if (kind === kinds.long && n >= 2) continue
    const { duplicate } = await queue.enqueue(kind, kind === kinds.keyed ? n % 3 : n)
    if (!duplicate) jobs += 1
  }
process.send!({ jobs })
