/**
 * A worker in a process of its own: so that its CPU and memory are its own, and so that it can be killed. Does what its
 * parent asks, one request after another. Started by worker-child.ts.
 */
import './round-trips.js'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type Queue, type Worker, type WorkerOptions, worker } from '../src/index.js'
import { nowUs } from './clock.js'
import { hold, noop, type Payload, waits } from './kinds.js'
import { roundTrips } from './round-trips.js'

/** What it keeps of each start: nothing but the count, instant and number for later, or it tells them at once. */
export type Telling = 'count' | 'keep' | 'at once'

export type Request =
  | { do: 'open'; url: string; schema: string; options: WorkerOptions; telling: Telling }
  | { do: 'start' }
  | { do: 'drain'; jobs: number }
  | { do: 'await ran'; count: number }
  | { do: 'report' }
  | { do: 'starts' }
  | { do: 'stop' }
  | { do: 'leftovers' }

/** Instants in microseconds of the clock that the processes of this machine share. */
export interface Mark {
  ran: number
  atUs: number
  rssBytes: number
}

export interface Report {
  ran: number
  cpuUs: number
  roundTrips: number
  rssBytes: number
}

export interface Drained {
  beganUs: number
  endedUs: number
  ran: number
  cpuUs: number
  roundTrips: number
  /** One at the begin, and one for each two-hundredth of the jobs. */
  marks: Mark[]
}

/** What is active beyond what was before the first `open`. */
export type Leftovers = Record<string, number>

const MARKS = 200
/** Sockets and threads that were ended are still there for a moment. */
const LEFTOVERS_MS_MAX = 3_000

let queue: Queue | undefined
let running: Worker | undefined
let telling: Telling = 'count'
let ran = 0
let starts: number[] = []
let marks: Mark[] = []
let markEach = Number.POSITIVE_INFINITY
let awaited: { count: number; resolve: () => void } | undefined
let before: Leftovers = {}

function started({ n }: Payload): void {
  ran += 1
  if (telling === 'at once') process.send!({ started: [n, nowUs()] })
  else if (telling === 'keep') starts.push(n, nowUs())
  if (ran % markEach === 0) mark()
  if (awaited !== undefined && ran >= awaited.count) awaited.resolve()
}

function mark(): void {
  marks.push({ ran, atUs: nowUs(), rssBytes: process.memoryUsage.rss() })
}

function handlers() {
  return [
    ...Object.values(noop).map((kind) => kind.handle(started)),
    ...waits.map(({ kind, ms }) =>
      kind.handle((payload) => {
        started(payload)
        return ms === 0 ? undefined : sleep(ms)
      }),
    ),
    hold.handle((payload, { signal }) => {
      started(payload)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }),
  ]
}

async function open(request: Extract<Request, { do: 'open' }>): Promise<void> {
  queue = await connect(request.url, { schema: request.schema, migrate: false })
  telling = request.telling
  ran = 0
  starts = []
  running = worker(queue, handlers(), { signals: false, ...request.options })
}

async function drain(jobs: number): Promise<Drained> {
  marks = []
  markEach = Math.max(1, Math.floor(jobs / MARKS))
  const sentBefore = roundTrips()
  const cpuBefore = process.cpuUsage()
  const beganUs = nowUs()
  mark()
  await running!.runUntilEmpty()
  const endedUs = nowUs()
  const { user, system } = process.cpuUsage(cpuBefore)
  return { beganUs, endedUs, ran, cpuUs: user + system, roundTrips: roundTrips() - sentBefore, marks }
}

function report(): Report {
  const { user, system } = process.cpuUsage()
  return { ran, cpuUs: user + system, roundTrips: roundTrips(), rssBytes: process.memoryUsage.rss() }
}

async function stop(): Promise<Report> {
  await running?.stop({ grace: 0 })
  await queue?.close()
  return report()
}

/** Timers, sockets, pipes and threads by Node's own names, and listeners of the process. */
function active(): Leftovers {
  const counts: Leftovers = {}
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1
  for (const name of process.eventNames()) counts[`listeners of ${String(name)}`] = process.listenerCount(name)
  return counts
}

async function leftovers(): Promise<Leftovers> {
  for (const until = performance.now() + LEFTOVERS_MS_MAX; ; await sleep(50, undefined, { ref: false })) {
    const now = active()
    const beyond = Object.entries(now).map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
    const left = Object.fromEntries(beyond.filter(([, count]) => count > 0))
    if (Object.keys(left).length === 0 || performance.now() > until) return left
  }
}

async function perform(request: Request): Promise<unknown> {
  if (request.do === 'open') return open(request)
  if (request.do === 'start') return running!.start()
  if (request.do === 'drain') return drain(request.jobs)
  if (request.do === 'report') return report()
  // Number and instant in turns, of the jobs that started since it was opened.
  if (request.do === 'starts') return Float64Array.from(starts)
  if (request.do === 'stop') return stop()
  if (request.do === 'leftovers') return leftovers()
  if (ran >= request.count) return undefined
  return new Promise<void>((resolve) => {
    awaited = { count: request.count, resolve }
  })
}

process.on('message', ({ id, request }: { id: number; request: Request }) => {
  perform(request).then(
    (value) => process.send!({ id, value }),
    (error) => process.send!({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
// The parent is gone, whatever became of it.
process.once('disconnect', () => process.exit())
// A thread's output goes through these, which Node opens when they are asked for the first time.
void process.stdout
void process.stderr
before = active()
process.send!({ up: true })
