/**
 * The store as one process has it: every operation of the port goes over a line that is slow, loses, repeats and delays,
 * and that may be the death of the process. Each operation is cut at the four points that the port names: not sent; done
 * and the answer lost; done twice; done after the caller gave up. Made by the simulation, one for each process.
 */
import type { Timer } from '../../core/env.js'
import { QueueError } from '../../core/errors.js'
import type {
  Beat,
  BeatAnswer,
  Claim,
  ClaimRequest,
  Control,
  EnqueueOutcome,
  Inspect,
  NewJob,
  SettleAnswer,
  Settlement,
  Storage,
  TakeOver,
  Upkeep,
  Wake,
} from '../../storage/storage.js'
import type { VirtualTime } from '../virtual-time.js'
import { BeatThread } from './beat-thread.js'
import type { Faults } from './configuration.js'
import type { Draws } from './draws.js'
import type { Process } from './process.js'
import type { Server } from './server.js'
import { Asking } from './steering.js'
import type { Trace } from './trace.js'
import type { Witnessing } from './witnessing.js'

/** The time-outs of an adapter: it gives its callers an error then. */
const WORK_MS_MAX = 10_000
const ASK_MS_MAX = 30_000
/** A server cancels what nobody waits for after a minute. */
const LATE_MS_MAX = 60_000
/** An enqueue that is done twice: later its key might have been freed by an operator, and a second job be right. */
const REPEAT_MS_MAX = 20
const STALL_MS_MIN = 300
const STALL_MS_MAX = 9_000
/** An error tells a caller at last that its connection is gone. */
const NOTICE_MS_MAX = 2_000

/** What callers are told when a call goes wrong: surely not done, or nobody knows. */
interface Telling {
  undone(why: string): Error
  unknown(why: string): Error
}

interface CallFacts extends Telling {
  operation: string
  timeoutMs: number
  /** The store only looks; it does so on a server that only reads, too. */
  reads?: true
  /** It may not be done twice: the port says that nobody sends it again. */
  once?: true
  /** Done late or again, it comes no later than so long after it was sent. */
  againMsMax?: number
  /** Whether it may be done twice after this answer: nobody repeats what was refused. */
  repeats?: (answer: unknown) => boolean
  /** What operators do is written down as it is asked and answered. */
  asking?: Asking
  /** It will be done twice. */
  onDoubled?: () => void
}

/** What becomes of one call: drawn before it is sent. */
interface Passage {
  cut: 'none' | 'unsent' | 'unanswered' | 'doubled' | 'late'
  outMs: number
  backMs: number
  /** Of the second time, or of the late one. */
  againMs: number
  /** Where it goes wrong, whether the caller gets an error or waits for its time-out. */
  told: 'error' | 'nothing'
  dies: 'never' | 'before' | 'under way' | 'after'
}

export interface LinkParts {
  readonly process: Process
  readonly server: Server
  /** The store as this process has opened it. */
  readonly store: Storage
  readonly time: VirtualTime
  readonly draws: Draws
  readonly trace: Trace
  readonly record: Witnessing
  /** Who sends beats: the main loop, or a thread that goes on when that is blocked. */
  readonly beats: 'loop' | 'thread'
  /** What goes wrong at present; nothing does after the storm. */
  readonly faults: () => Faults
  /** For so long something may still be done late. */
  readonly stormLeftMs: () => number
}

export class Link implements Storage {
  readonly name: string
  readonly upkeep: Upkeep
  readonly control: Control
  readonly inspect: Inspect
  readonly wake?: Wake
  private readonly ends = new Set<() => Promise<void>>()
  private asks = 0
  private readonly thread: BeatThread | undefined

  constructor(private readonly parts: LinkParts) {
    const { store } = parts
    this.name = store.name
    this.upkeep = facet(this, store.upkeep, (operation) => ({ ...WORK, operation, timeoutMs: WORK_MS_MAX }))
    this.control = facet(this, store.control!, (operation, args) => {
      const asking = new Asking(parts.process, parts.record, operation, args, ++this.asks)
      return { ...ASK, operation, timeoutMs: ASK_MS_MAX, asking }
    })
    this.inspect = facet(this, store.inspect!, (operation) => {
      return { ...ASK, operation, timeoutMs: ASK_MS_MAX, reads: true }
    })
    const { process, time } = parts
    if (parts.beats === 'thread') this.thread = new BeatThread({ process, time, send: (beat) => this.sendBeat(beat) })
    if (store.wake !== undefined) this.wake = { listen: (queues, listener) => this.listen(queues, listener) }
  }

  enqueue(jobs: readonly NewJob[]): Promise<EnqueueOutcome[]> {
    const repeatable = jobs.every(({ chosen, idempotency }) => chosen === true || idempotency !== undefined)
    const facts = { ...enqueueTelling(jobs[0]!.id), operation: 'enqueue', timeoutMs: ASK_MS_MAX, repeats: isStored }
    return this.call(repeatable ? facts : { ...facts, once: true }, (store) => store.enqueue(jobs))
  }

  /** One that is done twice is written down twice: its worker knows of the first time only. */
  async claim(request: ClaimRequest): Promise<Claim> {
    const { process, record } = this.parts
    const { worker, request: number } = request
    const onDoubled = (): void => record.write(process, { what: 'claiming', worker, request: number })
    return this.call({ ...work('claim'), onDoubled }, (store) => store.claim(request))
  }

  beat(beat: Beat): Promise<BeatAnswer> {
    return this.thread === undefined ? this.sendBeat(beat) : this.thread.beat(beat)
  }

  private sendBeat(beat: Beat): Promise<BeatAnswer> {
    // One that registers comes late only while its worker is sure to be known: later it would make it known anew.
    const first = beat.n === 1 ? { againMsMax: beat.info.leaseMs / 2 } : {}
    return this.call({ ...work('beat'), ...first }, (store) => store.beat(beat))
  }

  settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    return this.call(work('settle'), (store) => store.settle(settlements))
  }

  takeOver(request: { worker: string; limit: number }): Promise<TakeOver> {
    return this.call(work('take over'), (store) => store.takeOver(request))
  }

  unregister(worker: string): Promise<void> {
    this.thread?.stop()
    return this.call(work('unregister'), (store) => store.unregister(worker))
  }

  /** Others go on with the store. */
  async close(): Promise<void> {}

  /** Nothing of the process is left at the store's side: the connections of a dead one are closed. */
  async detach(): Promise<void> {
    const ends = [...this.ends]
    this.ends.clear()
    await Promise.all(ends.map((end) => end()))
  }

  /** Listeners that were not ended. */
  get listening(): number {
    return this.ends.size
  }

  call<Answer>(facts: CallFacts, perform: (store: Storage) => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { process, trace } = this.parts
      if (!process.alive) return
      const passage = this.passage(facts)
      const marks = passage.cut === 'none' ? '' : ` (${passage.cut})`
      if (passage.dies === 'before' && process.kill(`before ${facts.operation}`)) return
      trace.add(process.name, `${facts.operation}${marks}`)
      facts.asking?.sent(passage.cut === 'doubled' ? 'twice' : 'once')
      if (passage.cut === 'doubled') facts.onDoubled?.()
      new Call(this.parts, facts, passage, perform, { resolve, reject }).send()
    })
  }

  private passage({ once, againMsMax = LATE_MS_MAX, repeats }: CallFacts): Passage {
    const { draws, process } = this.parts
    // Each draw is made, whatever the faults are: so that one that is switched off shifts no other.
    const [which, stall, told, die, when] = [1, 2, 3, 4, 5].map(() => draws.fraction()) as [
      number,
      number,
      number,
      number,
      number,
    ]
    const faults = this.parts.faults()
    const travel = (): number => draws.between(0.05, 1) * faults.latencyMs
    const [outMs, backMs] = [travel(), travel()]
    const lateMs = draws.chance(0.5) ? draws.between(0, 2_000) : draws.between(0, LATE_MS_MAX)
    const stallMs = draws.between(STALL_MS_MIN, STALL_MS_MAX)
    const cut = process.spared ? 'none' : cutBy(which, faults, once === true)
    const stalled = stall < faults.stalled && !process.spared
    return {
      cut,
      outMs: stalled && when < 0.5 ? outMs + stallMs : outMs,
      backMs: stalled && when >= 0.5 ? backMs + stallMs : backMs,
      againMs: Math.min(
        lateMs,
        againMsMax,
        this.parts.stormLeftMs(),
        cut === 'doubled' && repeats ? REPEAT_MS_MAX : Infinity,
      ),
      told: told < 0.6 ? 'error' : 'nothing',
      dies: die >= faults.fatal ? 'never' : when < 0.33 ? 'before' : when < 0.66 ? 'under way' : 'after',
    }
  }

  private async listen(queues: readonly string[], listener: (queues: string[]) => void): Promise<() => Promise<void>> {
    const { process, server } = this.parts
    const end = await this.call(work('listen'), (store) =>
      store.wake!.listen(queues, (told) => this.hear(() => listener(told))),
    )
    this.ends.add(end)
    process.reach(() => listener([...queues]))
    return async () => {
      if (this.ends.delete(end)) await server.perform(end)
    }
  }

  private hear(tell: () => void): void {
    const { draws, time, process } = this.parts
    const [which, againMs] = [draws.fraction(), draws.between(0, 5_000)]
    const { hintsLost, latencyMs } = this.parts.faults()
    const after = (ms: number): void => void time.timer(ms, () => process.reach(tell))
    if (which < hintsLost) return
    after(which < 2 * hintsLost ? againMs : latencyMs)
    if (which >= 2 * hintsLost && which < 3 * hintsLost) after(againMs)
  }
}

/** One call on its way. */
class Call<Answer> {
  private over = false
  private patience: Timer | undefined

  constructor(
    private readonly parts: LinkParts,
    private readonly facts: CallFacts,
    private readonly passage: Passage,
    private readonly perform: (store: Storage) => Promise<Answer>,
    private readonly caller: { resolve: (answer: Answer) => void; reject: (error: unknown) => void },
  ) {}

  send(): void {
    const { passage, facts } = this
    this.patience = this.after(facts.timeoutMs, () => this.fail(facts.unknown('no answer in time')))
    if (passage.cut === 'unsent') {
      this.after(passage.outMs, () => this.fail(facts.undone('connect ECONNREFUSED')))
      return
    }
    const life = this.parts.server.life
    if (passage.cut === 'late') {
      if (passage.told === 'error') this.after(passage.outMs, () => this.fail(facts.unknown('the connection was lost')))
      this.after(passage.outMs + passage.againMs, () => this.arrive(life, () => {}))
      return
    }
    this.after(passage.outMs, () =>
      this.arrive(life, (answer) => {
        this.answer(answer, life)
        if (passage.cut === 'doubled' && (facts.repeats?.(answer) ?? true))
          this.after(passage.againMs, () => this.arrive(life, () => {}))
      }),
    )
    if (passage.dies === 'under way')
      this.after(passage.outMs * 0.9, () => void this.parts.process.kill(`in ${facts.operation}`))
  }

  private arrive(life: number, then: (answer: Answer) => void): void {
    const { server, trace, process } = this.parts
    const { facts } = this
    if (server.state === 'down' || life !== server.life) {
      this.fail(life === server.life ? facts.undone('connect ECONNREFUSED') : facts.unknown('the connection was lost'))
      return
    }
    if (server.state === 'read-only' && facts.reads === undefined) {
      this.fail(facts.undone('cannot execute in a read-only transaction'))
      return
    }
    trace.add('store', `does ${facts.operation} of ${process.name}`)
    // What a store refuses it refuses for its caller.
    server.perform(() => this.perform(this.parts.store)).then(then, (error) => this.fail(error))
  }

  private answer(answer: Answer, life: number): void {
    const { server, process } = this.parts
    const { passage, facts } = this
    if (passage.cut === 'unanswered') {
      if (passage.told === 'error')
        this.after(NOTICE_MS_MAX * 0.5, () => this.fail(facts.unknown('the connection was lost')))
      return
    }
    this.after(passage.backMs, () => {
      if (life !== server.life) this.fail(facts.unknown('the connection was lost'))
      else if (passage.dies === 'after' && process.kill(`at the answer to ${facts.operation}`)) return
      else
        this.end(() => {
          facts.asking?.answered(answer)
          this.caller.resolve(answer)
        })
    })
  }

  private fail(error: unknown): void {
    this.end(() => this.caller.reject(error))
  }

  /** The caller hears once, when its event loop comes to it. */
  private end(tell: () => void): void {
    if (this.over) return
    this.over = true
    this.patience?.cancel()
    this.parts.process.reach(tell)
  }

  private after(ms: number, run: () => void): Timer {
    return this.parts.time.timer(ms, run)
  }
}

function cutBy(which: number, { unsent, unanswered, doubled, late }: Faults, once: boolean): Passage['cut'] {
  let left = which
  for (const [cut, part] of [
    ['unsent', unsent],
    ['unanswered', unanswered],
    ['late', late],
    ['doubled', once ? 0 : doubled],
  ] as const) {
    left -= part
    if (left < 0) return cut
  }
  return 'none'
}

function isStored(outcomes: unknown): boolean {
  return (outcomes as EnqueueOutcome[]).every(({ status }) => status === 'created' || status === 'duplicate')
}

/** Workers are told what the driver says. */
const WORK: Telling = {
  undone: (why) => Object.assign(new Error(why), { code: 'ECONNREFUSED' }),
  unknown: (why) => new Error(why),
}

/** Those who look or steer are told that it failed; whether it was done they have to see. */
const ASK: Telling = {
  undone: (why) => new QueueError('STORE_UNAVAILABLE', why),
  unknown: (why) => new QueueError('STORE_UNAVAILABLE', why),
}

function enqueueTelling(jobId: string): Telling {
  return {
    undone: (why) => new QueueError('STORE_UNAVAILABLE', why, { jobId }),
    unknown: (why) => new QueueError('OUTCOME_UNKNOWN', why, { jobId }),
  }
}

function work(operation: string): CallFacts {
  return { ...WORK, operation, timeoutMs: WORK_MS_MAX }
}

/** Every method of the facet over the link. */
function facet<Facet extends object>(
  link: Link,
  of: Facet,
  factsOf: (operation: string, args: readonly unknown[]) => CallFacts,
): Facet {
  return new Proxy(of, {
    get: (target, operation) => {
      const method: unknown = Reflect.get(target, operation, target)
      if (typeof method !== 'function' || typeof operation !== 'string') return method
      return (...args: unknown[]) =>
        link.call(factsOf(operation, args), () => method.apply(target, args) as Promise<unknown>)
    },
  })
}
