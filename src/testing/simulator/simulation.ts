/**
 * One simulation: the real client, worker and upkeep in processes of their own, over one store, through a storm of
 * faults and into the calm in which every job has to end; then the store is read once and the checker judges. One
 * configuration gives one trace. Called by simulate.ts.
 */

import type { Storage } from '../../storage/storage.js'
import { type History, recordOf, type StoreRecord } from '../checker/history.js'
import type { VirtualTime } from '../virtual-time.js'
import { CALM, type Configuration } from './configuration.js'
import { Draws } from './draws.js'
import { expectationOf } from './expectations.js'
import { Link } from './link.js'
import { type Life, type LifeParts, ProducerLife, WorkerLife, type WorkerParts } from './lives.js'
import { OperatorLife } from './operators.js'
import { type PlannedJob, plannedJob, sortsOfSeat } from './plan.js'
import { Process } from './process.js'
import { Server } from './server.js'
import { Trace } from './trace.js'
import { type Disaster, type DisasterOfSeat, weatherOf } from './weather.js'
import { Witnessing } from './witnessing.js'
import type { World } from './worlds.js'

/** A place for a process: when the one in it is gone, another one comes. */
interface Seat {
  readonly number: number
  readonly role: 'worker' | 'producer' | 'operator'
  /** How many processes were in it. */
  count: number
  /** The process in it, from before its first step on. */
  process: Process | undefined
  link: Link | undefined
  life: Life | undefined
  /** Of a producer: how far its part of the plan is sent. */
  next: number
  done: boolean
}

const STATES = ['ready', 'delayed', 'retrying', 'running', 'completed', 'cancelled', 'dead'] as const
const PAGE = 1_000
const REFILL_MS_MAX = 3_000
const LOOK_MS = 500
const REST_MS = 30_000
/** A program that goes round in circles would fill the memory: what has not ended then counts as never ending. */
const EVENTS_MAX = 400_000
/** A suspect waits for its turn: the claim that offers one, and a backoff that goes on beside others. */
const ALONE_MS = 3_000
const HOUR_MS = 3_600_000

export class Simulation {
  readonly trace: Trace
  readonly record: Witnessing
  /** Worker-hours of virtual time of workers that were up. */
  workerHours = 0
  /** What was found beside the history: things left over in processes that ended. */
  readonly leftovers: string[] = []
  private readonly draws: Draws
  private readonly server: Server
  /** Looks at the store from outside, by no link. */
  private readonly reader: Storage
  private readonly seats: Seat[]
  private readonly plan: PlannedJob[]
  private readonly bornAt = new Map<Process, number>()
  private processes = 0
  private stormy = true

  constructor(
    readonly configuration: Configuration,
    readonly time: VirtualTime,
    private readonly world: World,
    keep: 'lines' | 'digest',
  ) {
    const { seed, jobs, workers, producers, operators } = configuration
    this.draws = new Draws(seed)
    this.trace = new Trace(() => this.time.monotonic(), keep)
    this.record = new Witnessing(this.time, this.trace)
    this.reader = world.open()
    this.server = new Server(world.before?.bind(world), this.time, this.trace, (is, kind) => this.outage(is, kind))
    this.plan = Array.from({ length: jobs }, (_, n) => plannedJob(configuration, n))
    const roles: Seat['role'][] = [
      ...Array.from({ length: workers }, () => 'worker' as const),
      ...Array.from({ length: producers }, () => 'producer' as const),
      ...Array.from({ length: operators }, () => 'operator' as const),
    ]
    this.seats = roles.map((role, number) => ({
      number,
      role,
      count: 0,
      process: undefined,
      link: undefined,
      life: undefined,
      next: 0,
      done: false,
    }))
  }

  /** From the first process to the last one's end. */
  async run(): Promise<History> {
    const { stormMs } = this.configuration
    const control = this.reader.control!
    for (const { name, order, limits } of this.configuration.queues) {
      await control.order(name, order)
      if (limits !== undefined) await control.limit(name, limits)
    }
    for (const seat of this.seats) this.time.timer(this.draws.between(0, REFILL_MS_MAX), () => this.fill(seat))
    for (const disaster of weatherOf(this.configuration, this.seats.length))
      this.time.timer(disaster.at, () => this.strike(disaster))
    while (this.time.monotonic() < stormMs && this.trace.size < EVENTS_MAX)
      await this.time.advance(Math.min(LOOK_MS, stormMs - this.time.monotonic()))
    this.stormy = false
    this.server.recover()
    this.trace.add('world', 'is calm')
    await this.calm()
    await this.rest()
    const records = await this.records()
    await this.takeDown()
    return this.history(records)
  }

  // Processes.

  private process(name: string): Process {
    const { time, trace } = this
    const draws = this.draws.fork('process', name)
    return new Process(name, ++this.processes, { time, draws, trace, onGone: (process) => this.gone(process) })
  }

  private fill(seat: Seat): void {
    if (seat.process?.alive || seat.done || this.closing) return
    seat.count += 1
    const process = this.process(`${seat.role}-${seat.number}.${seat.count}`)
    const draws = this.draws.fork('link', process.name)
    process.skewMs = this.configuration.faults.clockJumpsPerMinute > 0 ? draws.between(-600_000, 600_000) : 0
    const { server, time, trace, record, configuration } = this
    const link = new Link({
      store: this.world.open(),
      beats: configuration.beats,
      process,
      record,
      server,
      time,
      draws,
      trace,
      faults: () => (this.stormy ? configuration.faults : CALM),
      stormLeftMs: () => this.stormLeftMs(),
    })
    // The checker knows two roles; who enqueues nothing and runs nothing is a producer to it.
    record.add('world', {
      what: 'spawned',
      process: process.name,
      role: seat.role === 'worker' ? 'worker' : 'producer',
    })
    this.bornAt.set(process, time.monotonic())
    seat.process = process
    seat.link = link
    const parts = { process, link, record, configuration, plan: (n: number) => this.plan[n]! }
    if (seat.role === 'worker')
      seat.life = this.beginWorker({ ...parts, sorts: sortsOfSeat(configuration, seat.number) })
    else seat.life = seat.role === 'producer' ? this.beginProducer(seat, parts) : this.beginOperator(seat, parts)
  }

  private beginWorker(parts: WorkerParts): Life {
    const life = new WorkerLife(parts)
    void life.run().then(() => this.ended(life))
    return life
  }

  private beginProducer(seat: Seat, parts: LifeParts): Life {
    const { workers, producers } = this.configuration
    const own = this.plan
      .filter(({ n, key }) => key !== undefined || n % producers === seat.number - workers)
      .sort((a, b) => a.sentAtMs - b.sentAtMs)
    const life = new ProducerLife(parts, own, (next) => {
      seat.next = next
    })
    void life.run(seat.next).then(() => {
      seat.done = true
      this.ended(life)
    })
    return life
  }

  private beginOperator(seat: Seat, parts: LifeParts): Life {
    const life = new OperatorLife(parts, () => this.stormLeftMs())
    void life.run().then(() => {
      seat.done = true
      this.ended(life)
    })
    return life
  }

  private stormLeftMs(): number {
    return Math.max(0, this.configuration.stormMs - this.time.monotonic())
  }

  /** It came to its own end: whatever it has left over would keep its process from ending, or leak. */
  private ended({ process, link }: Life): void {
    if (!process.alive) return
    if (process.pending > 0) this.leftovers.push(`${process.name} ended with ${process.pending} timers`)
    if (link.listening > 0) this.leftovers.push(`${process.name} ended and listens still`)
    process.end()
  }

  private gone(process: Process): void {
    const seat = this.seats.find((one) => one.process === process)
    if (seat === undefined) return
    void seat.link!.detach()
    const at = this.time.monotonic()
    if (seat.role === 'worker') this.workerHours += (at - this.bornAt.get(process)!) / HOUR_MS
    this.bornAt.delete(process)
    const killed = process.killedBy
    if (killed !== undefined) this.record.add('world', { what: 'killed', process: process.name, moment: killed })
    const [code, signal] = killed === undefined ? [0, null] : [null, 'SIGKILL']
    this.record.add('world', { what: 'gone', process: process.name, code, signal })
    if (!this.closing) this.time.timer(this.draws.between(50, REFILL_MS_MAX), () => this.fill(seat))
  }

  private closing = false

  private strike(disaster: Disaster): void {
    if ('seat' in disaster) {
      const life = this.seats[disaster.seat]!.life
      if (life?.process.alive) this.strikeProcess(life, disaster)
    } else if (disaster.what === 'restart') this.server.restart(disaster.ms)
    else this.server.onlyRead(disaster.ms)
  }

  private strikeProcess(life: Life, disaster: DisasterOfSeat): void {
    const { process } = life
    switch (disaster.what) {
      case 'kill':
        if (!process.kill('by the weather')) this.record.add('world', { what: 'spared', process: process.name })
        return
      case 'deploy':
        this.trace.add(process.name, 'is told to stop')
        process.reach(() => void life.stop(this.configuration.worker.graceMs))
        return
      case 'block':
      case 'freeze':
        this.block(process, disaster.what, disaster.ms)
        return
      case 'clock jump':
        process.skewMs = disaster.ms
        this.trace.add(process.name, `has its clock ${disaster.ms.toFixed(0)} ms off`)
    }
  }

  /** Numbers of what was done: of the last thing, and of the last outage. */
  private faults = 0
  private outages = 0

  private outage(is: 'begun' | 'over', kind: string): void {
    if (is === 'begun') {
      this.outages = ++this.faults
      this.record.add('world', { what: 'fault', fault: this.outages, is, kind, touches: [], outage: true })
      return
    }
    this.faultEnds(this.outages)
  }

  private faultEnds(fault: number): void {
    this.record.add('world', { what: 'fault', fault, is: 'lifting' })
    this.record.add('world', { what: 'fault', fault, is: 'over' })
  }

  private block(process: Process, kind: string, ms: number): void {
    const fault = ++this.faults
    this.record.add('world', { what: 'fault', fault, is: 'begun', kind, touches: [process.name], outage: false })
    this.time.timer(ms, () => this.faultEnds(fault))
    process.block(ms)
  }

  // The end.

  /** Until every job has ended, or the bound says that they never will. */
  private async calm(): Promise<void> {
    const until = this.time.monotonic() + this.calmMs()
    do await this.time.advance(LOOK_MS)
    while (this.time.monotonic() < until && this.trace.size < EVENTS_MAX && !(await this.isDone()))
  }

  /** Workers that have nothing to do: nothing that has ended may come back, and nobody may be taken for dead. */
  private async rest(): Promise<void> {
    if (this.trace.size < EVENTS_MAX) await this.time.advance(REST_MS)
  }

  /**
   * How long the calm may last: leases that end, judges that become steady, calls and duties that wait after a failure;
   * the longest delay and backoff; then all work that there may be, one job after the other, each with its wait for a
   * turn to run alone.
   */
  private calmMs(): number {
    const { worker, faults, operators } = this.configuration
    // Those that are redriven have their attempts once more, and few are redriven twice.
    const rounds = operators > 0 ? 3 : 1
    const recovery = 120_000 + 5 * worker.leaseMs + faults.latencyMs * 20
    const delays = Math.max(0, ...this.plan.map(({ delayMs }) => delayMs))
    const perJob = this.plan.map(({ sort, workMs, failures, attempts, timeoutMs, deafMs }) => {
      const runs = Math.min(attempts, failures + 2)
      const crashes = sort === 'poison' ? 4 * (2 * worker.leaseMs + 15_000) : 0
      return rounds * (runs * (Math.min(workMs, timeoutMs) + deafMs + ALONE_MS) + crashes)
    })
    return recovery + delays + perJob.reduce((sum, ms) => sum + ms, 0)
  }

  private async isDone(): Promise<boolean> {
    if (this.seats.some(({ role, done }) => role !== 'worker' && !done)) return false
    for (const { name } of this.configuration.queues) {
      const { ready, delayed, retrying, running } = await this.reader.inspect!.counts(name)
      if (ready.count + delayed.count + retrying.count + running.count > 0) return false
    }
    return true
  }

  private async takeDown(): Promise<void> {
    this.closing = true
    for (const { life } of this.seats) life?.process.reach(() => void life.stop(0))
    // Those that are frozen hear of it when they wake.
    const until = this.time.monotonic() + 5 * this.configuration.worker.leaseMs + 60_000
    const isUp = (): boolean => this.seats.some(({ life }) => life?.process.alive)
    while (isUp() && this.time.monotonic() < until) await this.time.advance(LOOK_MS)
    for (const { life } of this.seats)
      if (life?.process.alive) {
        this.leftovers.push(`${life.process.name} does not end when it is told to`)
        life.process.end()
      }
  }

  private async records(): Promise<StoreRecord[]> {
    const records: StoreRecord[] = []
    for (const state of STATES) {
      let after: string | undefined
      do {
        const page = await this.reader.inspect!.list({ state, limit: PAGE, ...(after ? { after } : {}) })
        records.push(...page.jobs.map(recordOf))
        after = page.next ?? undefined
      } while (after !== undefined)
    }
    return records
  }

  private history(records: StoreRecord[]): History {
    const { worker, queues, keptMs } = this.configuration
    return {
      expect: (n) => (this.plan[n] === undefined ? undefined : expectationOf(this.plan[n])),
      events: this.record.events,
      records,
      leaseMs: worker.leaseMs,
      retention: keptMs === undefined ? 'all kept' : 'pruned',
      orders: Object.fromEntries(queues.map(({ name, order }) => [name, order])),
      limits: Object.fromEntries(
        queues.flatMap(({ name, limits }) => (limits?.concurrency ? [[name, limits.concurrency]] : [])),
      ),
    }
  }
}
