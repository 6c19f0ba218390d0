/**
 * One run of a form, from an empty store to a verdict: workers start, the backlog is filled, producers enqueue while the
 * acts of the form go on, all comes to its end, and the checker reads what was written down. Called by main.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { grouped } from '../src/core/show.js'
import { QueueError } from '../src/index.js'
import { type Act, isFault } from '../src/testing/chaos/acts.js'
import { FORMS, type Form, type FormName } from '../src/testing/chaos/forms.js'
import { plannedJob } from '../src/testing/chaos/plan.js'
import type { Verdict } from '../src/testing/checker/check.js'
import { LogFile, logPath, sharedNow } from '../src/testing/checker/log-file.js'
import { Actor } from './acts.js'
import { Crew } from './crew.js'
import { FaultRun, LEAD_MS } from './fault-run.js'
import type { Folder, RunFacts } from './folder.js'
import { HELD_JOBS, Holder } from './holder.js'
import { itemOf } from './kinds.js'
import { toldOf } from './outcomes.js'
import { type Stage, stageOf } from './stage.js'
import type { ChaosStore, Waiting } from './store.js'

export interface RunOptions {
  form: FormName
  seed: number
  /** Acts go on for so long; undefined: until the kills are done. */
  seconds: number | undefined
  /** Varied jobs; undefined: as many as the time takes, or the full form. */
  jobs: number | undefined
  backlog: number
  kills: number | undefined
  workers: number
}

const PRODUCERS = 3
/** Of the plan: with it the varied jobs keep about half of the slots busy. */
const JOBS_PER_SECOND = 85
const FILL_BATCH = 1_000
const LOOK_MS = 1_000
const NOTE_MS = 5_000
/** At least this part of the backlog waits until the last part of a run: while it does, it may be let loose. */
const STANDING = 0.5
/** With less than this left, throughput cannot be measured any more. */
const NEARLY_NOTHING = 0.1
/** In the last part of a run the backlog is worked off while kills go on. */
const DRAIN_PART = 0.1
/** Nothing ends any more for so long, and a job is stuck. */
const STUCK_MS = 180_000
const STOP_MS_MAX = 40_000

export interface RunParts {
  options: RunOptions
  folder: Folder
  store: ChaosStore
  note: (text: string) => void
  asked: AbortSignal
}

export async function run(parts: RunParts): Promise<{ facts: RunFacts; verdict: Verdict }> {
  const { options, folder, store } = parts
  const facts = factsOf(options, store)
  await folder.writeRun(facts)
  const log = new LogFile(logPath(folder.logs, 'driver'))
  const { form, seed, workers } = options
  const stage = await stageOf(form, { store, dir: folder.dir, seed, workers, producers: PRODUCERS })
  const crew = new Crew({
    stage,
    schema: store.schema,
    storeAheadMs: store.aheadMs,
    logs: folder.logs,
    log,
    plan: facts.plan,
    workers,
    producers: PRODUCERS,
    perSecond: JOBS_PER_SECOND,
  })
  try {
    await new Run({ ...parts, facts, crew, log, stage }).play()
  } finally {
    crew.endAll()
    await Promise.all([...crew.workers, ...crew.producers].map(({ sitting }) => sitting?.child.ended))
    crew.forget()
    await stage.close()
    log.close()
  }
  await store.writeRecords(folder.records)
  parts.note('the checker reads the logs')
  return { facts, verdict: await folder.judged(facts) }
}

function factsOf(options: RunOptions, { schema, conditions }: ChaosStore): RunFacts {
  const { form, seed, jobs, backlog, workers } = options
  const seconds = secondsOf(options)
  const timed = seconds === undefined ? (fullOf(form).jobs ?? 0) : Math.ceil(seconds * JOBS_PER_SECOND)
  return { form, plan: { seed, jobs: jobs ?? timed, backlog }, schema, conditions: { ...conditions, workers } }
}

function fullOf(form: FormName): Partial<{ kills: number; jobs: number; seconds: number }> {
  return FORMS[form].full
}

/** Undefined: acts go on until the kills are done. */
function secondsOf({ form, seconds }: RunOptions): number | undefined {
  return seconds ?? fullOf(form).seconds
}

interface PlayParts extends RunParts {
  facts: RunFacts
  crew: Crew
  log: LogFile
  stage: Stage
}

class Run {
  private readonly began = performance.now()
  private readonly actor: Actor
  private readonly holder: Holder
  private readonly killsMax: number
  private notedAt = Number.NEGATIVE_INFINITY
  /** All acts are over, and the held transaction is committed. */
  private acted = false

  constructor(private readonly parts: PlayParts) {
    const { crew, log, stage, facts, options, asked } = parts
    const { form, kills } = options
    const full = options.seconds === undefined ? fullOf(form).kills : undefined
    this.killsMax = kills ?? full ?? Number.MAX_SAFE_INTEGER
    const left = (): number => facts.plan.backlog - crew.backlogDone
    const faults = new FaultRun({
      ...{ crew, stage, log, asked },
      mayWork: () => left() > facts.plan.backlog * NEARLY_NOTHING,
      note: (text) => this.note(text),
    })
    const mayFlood = (): boolean => left() > facts.plan.backlog * STANDING
    this.actor = new Actor({ crew, killsMax: this.killsMax, mayFlood, faults })
    this.holder = new Holder({ store: parts.store, log, plan: facts.plan })
  }

  async play(): Promise<void> {
    try {
      await this.played()
    } finally {
      // Broken off, a fault is ended all the same before anything else is: a server may have to be started for it.
      await this.actor.settled()
      await this.holder.end('roll back')
    }
  }

  private async played(): Promise<void> {
    const { crew, log } = this.parts
    log.write({ what: 'pace', is: crew.pace })
    for (const seat of crew.workers) seat.start()
    await this.fill()
    this.holder.start()
    for (const seat of crew.producers) seat.start()
    const acts = this.act().then(() => {
      this.acted = true
    })
    await Promise.all([acts, this.watchUntilEmpty()])
    this.note('the workers are stopped')
    await crew.stop(STOP_MS_MAX)
  }

  /** Cheap jobs, of the lowest priority: they wait behind all others and are there before them. */
  private async fill(): Promise<void> {
    const { jobs } = this.parts.facts.plan
    const backlog = this.parts.facts.plan.backlog - HELD_JOBS
    const from = performance.now()
    let next = jobs
    const filling = async (): Promise<void> => {
      while (next < jobs + backlog) {
        this.parts.asked.throwIfAborted()
        const until = Math.min(jobs + backlog, next + FILL_BATCH)
        const batch = Array.from({ length: until - next }, (_, i) => next + i)
        next = until
        await this.fillBatch(batch)
      }
    }
    await Promise.all([filling(), filling()])
    this.note(`a backlog of ${grouped(backlog)} waits (filled in ${((performance.now() - from) / 1_000).toFixed(1)} s)`)
  }

  private async fillBatch(numbers: readonly number[]): Promise<void> {
    const { store, facts, log } = this.parts
    log.writeAll(numbers.map((n) => ({ what: 'sending', n })))
    const items = numbers.map((n) => itemOf(plannedJob(facts.plan, n)!, () => sharedNow() + store.aheadMs))
    const results = await store.queue.enqueueMany(items)
    log.writeAll(results.map((result, i) => toldOf(numbers[i]!, result)))
  }

  /** Each act at its time, until the time is over or the kills are done. */
  private async act(): Promise<void> {
    const { options, asked } = this.parts
    const { seed, workers } = options
    const form: Form = FORMS[options.form]
    const seconds = secondsOf(options)
    const ms = seconds === undefined ? undefined : seconds * 1_000
    const from = performance.now()
    const passed = (): number => performance.now() - from
    for (const act of form.acts(seed, { workers, producers: PRODUCERS })) {
      if (ms !== undefined && endOf(act) >= ms) break
      await sleep(Math.max(0, act.atMs - leadOf(act) - passed()), undefined, { signal: asked })
      // One fault at a time, and the one before has to be made good.
      if (isFault(act)) await this.actor.ended()
      if (ms !== undefined && passed() >= ms) break
      this.drainInTime(act, ms)
      asked.throwIfAborted()
      // A kill that was promised may come to nothing: its victim was spared, or gone by itself.
      if (this.actor.spent) await this.actor.ended()
      if (this.actor.spent) break
      this.actor.begin(act)
    }
    if (ms !== undefined) await sleep(Math.max(0, ms - passed()), undefined, { signal: asked })
    await this.actor.ended()
    await this.holder.end('commit')
    this.actor.drain()
    this.note('nothing is done to it any more; all has to come to its end')
  }

  /** Kills go on while the backlog is worked off. Faults are measured, and for that it has to stand. */
  private drainInTime(act: Act, ms: number | undefined): void {
    if (isFault(act)) return
    const left = ms === undefined ? this.actor.left : 1 - act.atMs / ms
    if (left <= DRAIN_PART) this.actor.drain()
  }

  /** Until acts and producers are done and every job has ended, or nothing ends any more. */
  private async watchUntilEmpty(): Promise<void> {
    const { store, asked, crew, log } = this.parts
    const producers = { done: false }
    void Promise.all(crew.producers.map(({ closed }) => closed)).then(() => {
      producers.done = true
    })
    let open = Number.POSITIVE_INFINITY
    let movedAt = performance.now()
    for (;;) {
      // Read before the counts: what is committed after them, by a producer or the holder, would not be seen.
      const done = producers.done && this.acted
      const waiting = await store.waiting().catch(missing)
      if (waiting === undefined) {
        await sleep(LOOK_MS, undefined, { signal: asked })
        continue
      }
      log.write({ what: 'waiting', jobs: waiting.ready })
      this.show(waiting)
      if (done && waiting.open === 0) return
      if (waiting.open !== open || waiting.open === 0) movedAt = performance.now()
      open = waiting.open
      if (performance.now() - movedAt > STUCK_MS) {
        this.note(`nothing has ended for ${STUCK_MS / 1_000} s: what is left counts as lost`)
        return
      }
      await sleep(LOOK_MS, undefined, { signal: asked })
    }
  }

  private show({ delayed, retrying, running, dead }: Waiting): void {
    const now = performance.now()
    if (now - this.notedAt < NOTE_MS) return
    this.notedAt = now
    const { crew, facts } = this.parts
    const left = Math.max(0, facts.plan.backlog - crew.backlogDone)
    const kills = `${crew.kills}${this.killsMax === Number.MAX_SAFE_INTEGER ? '' : `/${this.killsMax}`} kills`
    this.note(
      `${kills}  ${grouped(left)} of the backlog left  ${delayed} delayed  ${retrying} retrying  ${running} running  ${dead} dead`,
    )
  }

  private note(text: string): void {
    this.parts.note(`${((performance.now() - this.began) / 1_000).toFixed(1).padStart(6)}s  ${text}`)
  }
}

/** What would not be over in time is not begun. */
function endOf(act: Act): number {
  return isFault(act) ? act.atMs + act.ms : act.atMs
}

function leadOf(act: Act): number {
  return isFault(act) ? LEAD_MS : 0
}

/** A store that was taken away cannot be asked. */
function missing(error: unknown): undefined {
  if (error instanceof QueueError) return undefined
  throw error
}
