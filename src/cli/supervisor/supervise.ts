/**
 * `leasehold work MODULE --min 1 --max 8`: worker processes, as many as the queues ask for, until it is asked to end.
 * Called by commands/work.ts.
 */
import { need } from '../../client/need.js'
import type { Queue } from '../../client/queue.js'
import { durationMs, formatDuration } from '../../core/duration.js'
import { decideScale, SCALE_BEGIN, type ScalePolicy, type ScaleState } from '../../core/scaling.js'
import type { Answer } from '../answer.js'
import { Away } from '../away.js'
import { tellEnding, type WorkChoice } from '../commands/work.js'
import { exitCodeOf, onEnding } from '../ending.js'
import { EXIT, type ExitCode } from '../exit-codes.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { onParentGone } from '../parent.js'
import type { Terminal } from '../terminal.js'
import { Crew } from './crew.js'
import { eventTeller, type TellEvent } from './events.js'
import type { ProcessMessage, ProcessOrder, ProcessSettings } from './messages.js'
import { policyOf, SCALE_DEFAULTS } from './policy.js'
import type { ProcessFailure } from './process.js'
import { loadsOf, oldestOf, sum } from './queue-load.js'
import { Reports } from './reports.js'

/** Of its own: to look. */
const CONNECTIONS = 1
/** Several start together, and what is odd about their queues is to be said once. */
const FIRST_PLACE = 1

export async function supervise(invocation: Invocation, modulePath: string, choice: WorkChoice): Promise<Answer> {
  const { max, ...rest } = choice
  // A duration is for --until-empty, and refused before.
  const policy = policyOf(typeof max === 'number' ? { ...rest, max } : rest)
  const queue = await invocation.store({ migrate: choice.migrate, connections: CONNECTIONS }, 'may be made')
  // A store that lives in one process only has nothing to share between several.
  need(queue.connection.storage, 'diagnose', 'a supervisor')
  const { terminal } = invocation
  const tell = eventTeller(terminal, choice.logLevel, () => queue.connection.env.now())
  const supervisor = new Supervisor(queue, policy, { invocation, modulePath, choice, tell })
  const exit = await untilEnded(supervisor, terminal)
  tell({ event: 'stopped', level: 'info', text: 'all workers have ended', facts: {} })
  return { exit }
}

function greeting({ kinds, queues }: Runs, { min, max, by, target, slots }: ScalePolicy): string {
  const count = min === max ? `${max} ${max === 1 ? 'process' : 'processes'}` : `${min} to ${max} processes`
  const aim = by === 'depth' ? `${target} due jobs a slot` : `waits of ${formatDuration(target)}`
  const how = min === max ? '' : ` (by ${by}: ${aim})`
  const where = `in ${count} of ${slots} ${slots === 1 ? 'slot' : 'slots'}${how}`
  return `running ${kinds.join(', ')} from ${queues.join(', ')} ${where}; SIGTERM or Ctrl-C drains, a second one ends at once`
}

/** The first wish drains, and so does a starter that goes; only a second signal hurries. */
async function untilEnded(supervisor: Supervisor, terminal: Terminal): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok
  const stopHearing = onEnding((cause, before) => {
    if (before > 0) exit = exitCodeOf(cause)
    tellEnding(terminal, cause, before)
    supervisor.end(before > 0 ? 'end' : 'drain')
  })
  const endWatch = onParentGone(() => {
    terminal.note(terminal.notePaint('yellow', 'the process that started this one is gone: draining'))
    supervisor.end('drain')
  })
  try {
    await supervisor.run()
  } finally {
    endWatch()
    stopHearing()
  }
  return exit
}

/** What the workers say that they run, once the first one is up. */
interface Runs {
  kinds: string[]
  queues: string[]
}

/** Resolves when it was asked. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

interface SupervisorParts {
  readonly invocation: Invocation
  readonly modulePath: string
  readonly choice: WorkChoice
  readonly tell: TellEvent
}

class Supervisor {
  private readonly crew: Crew
  private readonly reports: Reports
  private readonly asked = new AbortController()
  private fatal: ProcessFailure | undefined
  private runs: Runs | undefined
  private state: ScaleState = SCALE_BEGIN

  constructor(
    private readonly queue: Queue,
    private readonly policy: ScalePolicy,
    private readonly parts: SupervisorParts,
  ) {
    const { env } = queue.connection
    this.reports = new Reports(env)
    this.crew = new Crew({
      env,
      graceMs: durationMs(parts.choice.grace, '--grace'),
      settings: (place, first) => this.settings(place, first),
      tell: parts.tell,
      onMessage: (place, message) => this.heard(place, message),
      onFatal: (failure) => {
        this.fatal ??= failure
        this.end('drain')
      },
    })
  }

  /** Resolves when it was asked to end and all processes are gone. Rejects with what no worker could start for. */
  async run(): Promise<void> {
    this.crew.want(this.policy.min)
    await Promise.race([this.scale(), aborted(this.asked.signal)])
    await this.crew.gone()
    if (this.fatal === undefined) return
    const { code, message, fix, exit } = this.fatal
    // Told as if it had happened here.
    throw new CommandError(code as CommandError['code'], message, { exit, ...(fix === undefined ? {} : { fix }) })
  }

  end(order: ProcessOrder): void {
    // At once: what is asked of the store at this moment may be answered late, or never.
    if (order === 'end' || !this.asked.signal.aborted) void this.crew.end(order)
    this.asked.abort()
  }

  private async scale(): Promise<void> {
    const { env } = this.queue.connection
    const everyMs = durationMs(this.parts.choice.every ?? SCALE_DEFAULTS.every, '--every')
    const { terminal } = this.parts.invocation
    const away = new Away((text) => terminal.note(terminal.notePaint('yellow', text)))
    for (; !this.asked.signal.aborted; await env.sleep(everyMs, this.asked.signal)) {
      if (this.runs === undefined || this.policy.min === this.policy.max) continue
      try {
        await this.look(this.runs)
        away.back()
      } catch (error) {
        // As many as there are go on; how long the signal has been low is not known any more.
        this.state = SCALE_BEGIN
        away.away(error)
      }
    }
  }

  private async look({ kinds, queues }: Runs): Promise<void> {
    const { crew, policy, queue, reports } = this
    const loads = await loadsOf(queue, queues, kinds)
    if (this.asked.signal.aborted) return
    const from = crew.size
    const signals = {
      ready: sum(loads.map(({ ready }) => ready)).count,
      oldestWaitMs: oldestOf(loads) ?? 0,
      p95WaitMs: reports.p95WaitMs(),
      busy: reports.busy(),
    }
    const present = { wanted: from, up: crew.up }
    const nowMs = queue.connection.env.monotonic()
    const { wanted, why, state } = decideScale(signals, policy, { present, state: this.state, nowMs })
    this.state = state
    if (wanted === from) return
    crew.want(wanted)
    const text = `from ${from} to ${wanted} ${wanted === 1 ? 'process' : 'processes'}: ${why}`
    this.parts.tell({ event: 'scaled', level: 'info', text, facts: { from, to: wanted, why, ...rounded(signals) } })
  }

  private heard(place: number, message: ProcessMessage): void {
    if (message.type === 'up') this.hearRuns(message)
    else if (message.type === 'report') this.reports.add(place, message)
    else if (message.type === 'reader gone') this.end('drain')
  }

  /** The first time it is said to people, too. */
  private hearRuns({ kinds, queues }: Runs): void {
    const { terminal } = this.parts.invocation
    if (this.runs === undefined) terminal.note(terminal.notePaint('dim', greeting({ kinds, queues }, this.policy)))
    this.runs = { kinds, queues }
  }

  private settings(place: number, first: boolean): ProcessSettings {
    const { invocation, modulePath, choice } = this.parts
    const { url, schema, terminal } = invocation
    return {
      store: { url, ...(schema === undefined ? {} : { schema }) },
      json: terminal.json,
      verbose: terminal.verbose,
      module: modulePath,
      choice: { ...choice, ...(choice.name === undefined ? {} : { name: `${choice.name}/${place}` }) },
      speaks: first && place === FIRST_PLACE,
    }
  }
}

function rounded<Facts extends Record<string, number | null>>(facts: Facts): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(facts).map(([name, figure]) => [name, figure === null ? null : Math.round(figure)]),
  )
}
