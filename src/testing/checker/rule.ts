/**
 * What a rule is: a name, what it promises, which evidence it reads, and a function that says kept, broken or not judged.
 * A rule that lacks its evidence says so instead of passing, and the verdict counts what each one really judged.
 */
import type { Scene, Story } from './story.js'

/** Under which of the verdict's counts the breach of a rule falls. */
export type Breach =
  | 'lost'
  | 'settledTwice'
  | 'doubledEffects'
  | 'quarantinedInnocents'
  | 'needlessTakeOvers'
  | 'otherFaults'

/** `broken`: the sentence that says how. */
export type Ruling = 'kept' | 'not judged' | { broken: string }

/** About the story of one job. */
export interface Rule {
  /** The claim itself, in a few words: findings, mutants and docs name the rule by it. */
  name: string
  /** What a user may rely on, as a sentence. */
  promise: string
  breach: Breach
  /** What has to be in a history for it to judge, for people. */
  reads: string
  judge(story: Story, scene: Scene): Ruling
}

/** For rules that only look for a fault. */
export function ruled(broken: string | undefined): Ruling {
  return broken === undefined ? 'kept' : { broken }
}

/** One breach of a rule about the scene. `weight`: of so many jobs, or 1. */
export interface SceneFault {
  weight: number
  /** Of jobs, workers, queues or processes. */
  ids: string[]
  why: string
}

/** About no single job. */
export interface SceneRule {
  name: string
  promise: string
  breach: Breach
  reads: string
  faults(scene: Scene, leaseMs: number, stories: readonly Story[]): SceneFault[]
  /** How much it had to judge; 0 where the evidence is lacking. */
  judged(scene: Scene, leaseMs: number, stories: readonly Story[]): number
}
