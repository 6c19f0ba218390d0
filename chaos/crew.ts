/**
 * The processes of a run: a seat for each worker and producer. Whoever ends in a seat is followed by another process,
 * as a supervisor does it; who kills, and whom it spares, is decided here too, as it needs the seat's log. Called by
 * the run and the acts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Whom } from '../src/testing/chaos/acts.js'
import type { PlanSize } from '../src/testing/chaos/plan.js'
import { eventOf, type Stream } from '../src/testing/checker/history.js'
import { type LogFile, LogTail, logPath, sharedNow } from '../src/testing/checker/log-file.js'
import { MESSAGE_LENGTH_MAX } from '../src/testing/checker/told.js'
import { Child } from './child.js'
import type { Pace } from './handlers.js'
import type { ProducerSettings } from './producer-process.js'
import type { Role, Stage } from './stage.js'
import type { WorkerOrder, WorkerReport, WorkerSettings } from './worker-process.js'

export interface CrewParts {
  stage: Stage
  schema: string
  storeAheadMs: number
  /** The folder of logs. */
  logs: string
  /** The driver's own log. */
  log: LogFile
  plan: PlanSize
  workers: number
  producers: number
  /** Numbers of the plan that producers pass in a second. */
  perSecond: number
}

/** A process that ends again and again by itself, this soon, is not started for ever. */
const OWN_ENDS_MAX = 3

/** One process in its seat. */
export interface Sitting {
  child: Child<WorkerReport>
  tail: LogTail
  /** When and how it was killed, or in which call it was asked to kill itself. */
  killedAt?: number
  moment?: string
  /** The suspect that runs alone in it, as far as its log was read. */
  alone?: { crashesAlone: number } | undefined
  /** How far a producer has come. */
  reached: Record<Stream, number>
}

export class Seat {
  sitting: Sitting | undefined
  /** The last one has ended, and nobody follows. */
  readonly closed: Promise<void>
  private count = 0
  private ownEnds = 0
  private open = true
  private close!: () => void
  private from: Record<Stream, number> = { plain: 0, transactions: 0 }

  constructor(
    private readonly crew: Crew,
    readonly role: Role,
    readonly index: number,
  ) {
    this.closed = new Promise((resolve) => {
      this.close = resolve
    })
  }

  start(): void {
    const { parts } = this.crew
    this.count += 1
    const name = `${this.role}-${this.index}.${this.count}`
    parts.log.write({ what: 'spawned', process: name, role: this.role })
    const path = logPath(parts.logs, name)
    const preload = parts.stage.clockOf === undefined ? [] : ['./wrong-clock.js']
    const child = new Child<WorkerReport>(name, `./${this.role}-process.js`, this.settings(name, path), preload)
    const sitting: Sitting = { child, tail: new LogTail(path), reached: { ...this.from } }
    this.sitting = sitting
    void child.ended.then(() => this.ended(sitting))
  }

  /** Asks for an orderly end; nobody follows. */
  async stop(): Promise<void> {
    this.open = false
    const { sitting } = this
    if (sitting === undefined) return
    sitting.child.signal('SIGTERM')
    await sitting.child.ended
  }

  /** Whatever runs here ends at once, and nobody follows. */
  end(): void {
    this.open = false
    this.sitting?.child.signal('SIGKILL')
  }

  private settings(name: string, path: string): WorkerSettings | ProducerSettings {
    const { stage, schema, storeAheadMs, plan, producers, perSecond } = this.crew.parts
    const clock = stage.clockOf?.(this.role, this.index)
    const url = stage.urlOf(this.role, this.index)
    const common = { url, schema, name, logPath: path, storeAheadMs, ...(clock === undefined ? {} : { clock }) }
    if (this.role === 'worker') return { ...common, pace: this.crew.pace }
    return { ...common, plan, index: this.index, producers, perSecond, from: this.from }
  }

  private ended(sitting: Sitting): void {
    const { log } = this.crew.parts
    const { name, exit, last } = sitting.child
    const { code, signal, errors } = exit!
    const byItself = signal === null && code !== 0
    readLog(sitting)
    this.crew.backlogBefore += last?.backlogDone ?? 0
    this.from = sitting.reached
    this.sitting = undefined
    const killed = signal === 'SIGKILL' && this.open
    if (killed) this.killed(sitting)
    log.write({
      what: 'gone',
      process: name,
      code,
      signal,
      ...(byItself ? { errors: errors.slice(0, MESSAGE_LENGTH_MAX) } : {}),
    })
    this.ownEnds = byItself ? this.ownEnds + 1 : 0
    const done = this.role === 'producer' && code === 0
    if (this.open && !done && this.ownEnds < OWN_ENDS_MAX) this.start()
    else this.close()
    if (killed) log.write({ what: 'fault', fault: this.crew.kills, is: 'over' })
  }

  /** The fault is over when somebody sits here again. */
  private killed({ child: { name }, moment = 'by somebody else', killedAt = sharedNow() }: Sitting): void {
    const { log } = this.crew.parts
    this.crew.kills += 1
    log.write({ what: 'killed', process: name, moment }, killedAt)
    const fault = { fault: this.crew.kills, kind: 'kill', touches: [name], outage: false }
    log.write({ what: 'fault', is: 'begun', ...fault }, killedAt)
  }
}

export class Crew {
  readonly workers: Seat[]
  readonly producers: Seat[]
  pace: Pace = 'slow'
  /** Processes that were killed. */
  kills = 0
  /** Jobs of the backlog that workers have done who are gone. */
  backlogBefore = 0

  constructor(readonly parts: CrewParts) {
    this.workers = Array.from({ length: parts.workers }, (_, index) => new Seat(this, 'worker', index))
    this.producers = Array.from({ length: parts.producers }, (_, index) => new Seat(this, 'producer', index))
    // Also when this process ends in a way that nobody foresaw.
    process.on('exit', this.endAll)
  }

  /** Jobs of the backlog that were done, as far as workers have said. */
  get backlogDone(): number {
    return this.workers.reduce((sum, { sitting }) => sum + (sitting?.child.last?.backlogDone ?? 0), this.backlogBefore)
  }

  get everybody(): Whom {
    const indexes = (seats: readonly Seat[]): number[] => seats.map(({ index }) => index)
    return { workers: indexes(this.workers), producers: indexes(this.producers) }
  }

  namesOf(whom: Whom): string[] {
    return this.sittingsOf(whom).map(({ child }) => child.name)
  }

  setPace(pace: Pace): void {
    if (pace !== this.pace) this.parts.log.write({ what: 'pace', is: pace })
    this.pace = pace
    for (const { sitting } of this.workers) sitting?.child.send({ pace } satisfies WorkerOrder)
  }

  /** SIGKILL, at whatever point it is; unless it is gone, or has to be spared. */
  async kill(sitting: Sitting, moment: string): Promise<void> {
    const { child } = sitting
    if (!child.alive) return
    await child.freeze()
    if (this.spared(sitting)) return
    sitting.killedAt = sharedNow()
    sitting.moment = moment
    child.signal('SIGKILL')
    await child.ended
  }

  /** They stand still until they are told to go on (SIGCONT); but who has to be spared. */
  async freeze(whom: Whom): Promise<Child<WorkerReport>[]> {
    const sittings = this.sittingsOf(whom)
    await Promise.all(sittings.map(({ child }) => child.freeze()))
    return sittings.filter((sitting) => !this.spared(sitting)).map(({ child }) => child)
  }

  /** A second crash while alone quarantines, and nobody could tell this job from a poison job. It stands still. */
  private spared(sitting: Sitting): boolean {
    readLog(sitting)
    if (sitting.alone === undefined || sitting.alone.crashesAlone === 0) return false
    this.parts.log.write({ what: 'spared', process: sitting.child.name })
    sitting.child.signal('SIGCONT')
    return true
  }

  private sittingsOf({ workers, producers }: Whom): Sitting[] {
    const seats = [...workers.map((index) => this.workers[index]), ...producers.map((index) => this.producers[index])]
    return seats.flatMap((seat) => (seat?.sitting?.child.alive ? [seat.sitting] : []))
  }

  /** Orderly, and all together; whoever has not ended by then is killed, and the checker finds it so. */
  async stop(limitMs: number): Promise<void> {
    const patience = new AbortController()
    const late = sleep(limitMs, undefined, { signal: patience.signal }).then(this.endAll, () => {})
    await Promise.all([...this.workers, ...this.producers].map((seat) => seat.stop()))
    patience.abort()
    await late
  }

  readonly endAll = (): void => {
    for (const seat of [...this.workers, ...this.producers]) seat.end()
  }

  forget(): void {
    process.off('exit', this.endAll)
  }
}

/** What its log says of it that matters before a kill and after its end. Few lines do. */
function readLog(sitting: Sitting): void {
  for (const line of sitting.tail.lines()) {
    if (!/"what":"(alone|alone over|reached)"/.test(line)) continue
    const event = eventOf(line)
    if (event?.what === 'alone') sitting.alone = event
    else if (event?.what === 'alone over') sitting.alone = undefined
    else if (event?.what === 'reached') sitting.reached[event.stream] = event.n
  }
}
