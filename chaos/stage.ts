/**
 * What a form has set up between the processes of a run and their store, and how it spoils that. Made by the run, for
 * its form; called by the crew, for the address of each process, and by the actor, for each fault.
 */
import type { Fault } from '../src/testing/chaos/acts.js'
import type { FormName } from '../src/testing/chaos/forms.js'
import type { Crew } from './crew.js'
import { CutStage } from './stages/cut.js'
import { FreezeStage } from './stages/freeze.js'
import { PoolerStage } from './stages/pooler.js'
import { ReadOnlyStage } from './stages/read-only.js'
import { RestartStage } from './stages/restart.js'
import { SkewStage } from './stages/skew.js'
import type { ChaosStore } from './store.js'

export type Role = 'worker' | 'producer'

/** A fault that is in place. */
export interface Begun {
  /** The processes that it met. */
  touches: string[]
  /** While it lasts no beat of any worker reaches the store: so nobody may judge anybody for a lease after it. */
  outage: boolean
  end(): Promise<void>
}

export interface Stage {
  urlOf(role: Role, index: number): string
  /** The file that says what the clock of the process is off by; undefined where clocks are right. */
  clockOf?(role: Role, index: number): string
  /** Undefined when nobody was to be met after all. */
  begin(fault: Fault, crew: Crew): Promise<Begun | undefined>
  close(): Promise<void>
}

export interface StageParts {
  store: ChaosStore
  /** For files of its own. */
  dir: string
  seed: number
  workers: number
  producers: number
}

export function stageOf(form: FormName, parts: StageParts): Promise<Stage> {
  switch (form) {
    case 'kill':
    case 'freeze':
      return Promise.resolve(new FreezeStage(parts))
    case 'cut':
      return CutStage.open(parts)
    case 'restart':
      return Promise.resolve(new RestartStage(parts))
    case 'readonly':
      return Promise.resolve(new ReadOnlyStage(parts))
    case 'skew':
      return Promise.resolve(new SkewStage(parts))
    case 'pooler':
      return PoolerStage.open(parts)
  }
}
