/** What a supervisor and its worker processes tell each other. Sent by crew.ts and worker-process.ts. */
import type { WorkerStats } from '../../worker/index.js'
import type { WorkChoice } from '../commands/work.js'
import type { ExitCode } from '../exit-codes.js'
import type { StoreOptions } from '../invocation.js'

/** What a worker process is started with. */
export interface ProcessSettings {
  store: StoreOptions
  json: boolean
  verbose: boolean
  module: string
  choice: WorkChoice
  /** Says what one of them has to say to people: queues that nobody knows. */
  speaks: boolean
}

/** From a worker process. */
export type ProcessMessage =
  /** It takes jobs from now on. */
  | { type: 'up'; kinds: string[]; queues: string[] }
  /** Twice a second. `waits`: a sample of how long jobs that started since had been due, in milliseconds. */
  | { type: 'report'; busy: number; waits: number[] }
  /** It ends for this reason. `code` and `exit` are those of the command line. */
  | { type: 'failed'; code: string; message: string; fix?: string; exit: ExitCode }
  /** Nobody reads what it writes any more, and so it drains. */
  | { type: 'reader gone' }
  /** It has ended in order. */
  | { type: 'done'; stats: WorkerStats }

/** To a worker process: end in order; end at once. Told again it changes nothing. */
export type ProcessOrder = 'drain' | 'end'
