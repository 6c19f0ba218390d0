/** Runs a seed, or a configuration, and says what it showed. Called by the runner, by tests and by whoever shrinks. */
import nodeProcess from 'node:process'
import { check, type Verdict } from '../checker/check.js'
import { VirtualTime } from '../virtual-time.js'
import { type Configuration, configurationOf } from './configuration.js'
import { Simulation } from './simulation.js'
import { MemoryWorld, type SimulatedStore, type World } from './worlds.js'

/** What a mutant may take hold of before the first process begins. */
export interface Seams {
  /** The store; its `inside` is the state of the memory store. */
  readonly store: SimulatedStore
}

/**
 * Spoils the world for the length of one run: changes methods of the store, or of a class of the worker or the client.
 * What it returns undoes that; the store needs no undoing, as each run has its own.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most have nothing to undo, and return nothing
export type Spoil = (seams: Seams) => (() => void) | void

/** How a simulation is run. */
export interface SimulateOptions {
  /** `lines`: the whole trace is wanted. */
  trace?: 'lines' | 'digest'
  /** Of the memory store, or of the client and worker over it. */
  spoil?: Spoil
  /** Where the store is; in memory unless given. */
  world?: (time: VirtualTime) => Promise<World>
}

/** A rule that the run broke. */
export interface Violation {
  rule: string
  why: string
  n?: number
}

/** What a simulation has shown. */
export interface Simulated {
  configuration: Configuration
  violations: Violation[]
  /** The same for the same configuration, on any machine. */
  digest: string
  /** Empty unless it was asked for. */
  trace: string[]
  /** How many lines the trace has. */
  events: number
  virtualMs: number
  workerHours: number
  verdict: Verdict
}

/** Beside the rules of the checker. */
export const LEFTOVER_RULE = 'a process that ended leaves nothing over'
export const REJECTION_RULE = 'no rejection is unhandled'

/**
 * Runs the real client, workers and upkeep on virtual time, as a seed or a configuration says, and judges what happened.
 * The same one gives the same trace. What breaks a rule is an answer (`violations`), not an error.
 */
export async function simulate(what: number | Configuration, options: SimulateOptions = {}): Promise<Simulated> {
  const configuration = typeof what === 'number' ? configurationOf(what) : what
  const time = new VirtualTime({ seed: configuration.seed })
  const memory = new MemoryWorld(time)
  const world = options.world === undefined ? memory : await options.world(time)
  const simulation = new Simulation(configuration, time, world, options.trace ?? 'digest')
  const undo = options.spoil?.({ store: memory.store })
  const rejections: unknown[] = []
  const onRejection = (reason: unknown): void => void rejections.push(reason)
  nodeProcess.on('unhandledRejection', onRejection)
  try {
    const verdict = check(await simulation.run())
    const { trace, leftovers, workerHours } = simulation
    return {
      configuration,
      violations: [
        ...verdict.findings.map(({ rule, why, n }) => ({ rule, why, ...(n === undefined ? {} : { n }) })),
        ...leftovers.map((why) => ({ rule: LEFTOVER_RULE, why })),
        ...rejections.map((reason) => ({ rule: REJECTION_RULE, why: String(reason) })),
      ],
      digest: trace.digest(),
      trace: trace.lines,
      events: trace.size,
      virtualMs: time.monotonic(),
      workerHours,
      verdict,
    }
  } finally {
    nodeProcess.off('unhandledRejection', onRejection)
    undo?.()
  }
}
