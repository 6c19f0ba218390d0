/** Processes of one's own: started, heard, ended. Nobody else's process is ever touched. Called by the demo, and by chaos. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { CommandError } from '../failure.js'

const ERRORS_LENGTH_MAX = 4_000
const SETTINGS = 'LEASEHOLD_CHILD_SETTINGS'

/** What it was given by the process that started it; in a child only. */
export function childSettings<Settings>(): Settings {
  return JSON.parse(process.env[SETTINGS] ?? 'null') as Settings
}

/** The environment of a child that is to be given these. Not as arguments: everybody on the machine can read those, and a URL has a password in it. */
export function childEnvironment(settings: unknown): NodeJS.ProcessEnv {
  return { ...process.env, [SETTINGS]: JSON.stringify(settings) }
}

export class Child<Message> {
  /** The newest message. */
  last: Message | undefined
  /** Whether its end is wanted. */
  endExpected = false
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>
  protected readonly process: ChildProcess
  /** The end of what it wrote to stderr. */
  protected errors = ''
  private gone = false
  private wake: () => void = () => {}

  constructor(
    readonly name: string,
    script: string,
    settings: unknown,
    execArgv: readonly string[] = [],
  ) {
    this.process = fork(fileURLToPath(new URL(script, import.meta.url)), [], {
      // A session of its own: a Ctrl-C at the terminal is for whoever started it, who ends it in order.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [...execArgv],
      env: childEnvironment(settings),
    })
    this.process.stderr?.on('data', (chunk) => {
      this.errors = (this.errors + String(chunk)).slice(-ERRORS_LENGTH_MAX)
    })
    this.process.on('message', (message) => {
      this.last = message as Message
      this.wake()
    })
    this.process.on('error', () => {}) // a signal to a process that is gone; `ended` tells
    this.ended = new Promise((resolve) => {
      this.process.on('close', () => {
        this.gone = true
        this.wake()
        resolve()
      })
    })
  }

  get alive(): boolean {
    return !this.gone
  }

  /** The first message of which `test` holds. Rejects when the process ends instead. */
  async message(test: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      if (this.last !== undefined && test(this.last)) return this.last
      this.check()
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
  }

  /** Throws when it has ended without being asked to. */
  check(): void {
    if (this.alive || this.endExpected) return
    const said = this.errors.trim()
    throw new CommandError('DEMO_FAILED', `${this.name} ended by itself${said === '' ? '' : `: ${said}`}`)
  }

  /** Asks it to end in order. */
  stop(): Promise<void> {
    this.endExpected = true
    this.process.kill('SIGTERM')
    return this.ended
  }

  /** Ends it at once, in the middle of whatever it does. */
  kill(): void {
    this.endExpected = true
    // Once it is gone its number may be another's.
    if (this.alive) this.process.kill('SIGKILL')
  }
}
