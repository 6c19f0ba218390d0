/**
 * Makes a failing configuration small: fewer jobs, faults off one by one, fewer processes, an earlier end, for as long as
 * the same rule is broken. What is left is printed, replayed and kept. Called by the runner and by tests.
 */
import { CALM, type Configuration, FAULT_NAMES, SORTS } from './configuration.js'
import type { Simulated } from './simulate.js'

export interface ShrinkOptions {
  /** Runs a configuration. */
  simulate: (configuration: Configuration) => Promise<Simulated>
  /** So many runs at most. */
  runsMax: number
}

/** The smallest that was found to break the rule as well; the one that was given, if none does. */
export async function shrink(failing: Configuration, rule: string, options: ShrinkOptions): Promise<Configuration> {
  let best = failing
  let runs = 0
  for (let again = true; again; ) {
    again = false
    for (const smaller of smallerThan(best)) {
      if (runs++ >= options.runsMax) return best
      const { violations } = await options.simulate(smaller)
      if (!violations.some((violation) => violation.rule === rule)) continue
      best = smaller
      again = true
      break
    }
  }
  return best
}

/** Each differs from it in one thing; the largest steps first. */
function smallerThan(of: Configuration): Configuration[] {
  return [...ofJobs(of), ...ofFaults(of), ...ofSorts(of), ...ofProcesses(of), ...ofTime(of)]
}

function ofJobs(of: Configuration): Configuration[] {
  const sizes = [of.jobs >> 2, of.jobs >> 1, Math.floor(of.jobs * 0.75), of.jobs - 1]
  return [...new Set(sizes)].filter((jobs) => jobs >= 1 && jobs < of.jobs).map((jobs) => ({ ...of, jobs }))
}

function ofFaults(of: Configuration): Configuration[] {
  return FAULT_NAMES.filter((name) => of.faults[name] !== CALM[name]).map((name) => ({
    ...of,
    faults: { ...of.faults, [name]: CALM[name] },
  }))
}

function ofSorts(of: Configuration): Configuration[] {
  const on = SORTS.filter((sort) => of.sorts[sort] > 0)
  if (on.length === 1) return []
  return on.map((sort) => ({ ...of, sorts: { ...of.sorts, [sort]: 0 } }))
}

function ofProcesses(of: Configuration): Configuration[] {
  const found: Configuration[] = []
  if (of.workers > 1) found.push({ ...of, workers: of.workers - 1 })
  if (of.specialists > 0) found.push({ ...of, specialists: 0 })
  if (of.beats === 'thread') found.push({ ...of, beats: 'loop' })
  if (of.operators > 0) found.push({ ...of, operators: of.operators - 1 })
  if (of.producers > 1) found.push({ ...of, producers: of.producers - 1 })
  if (of.queues.length > 1) found.push({ ...of, queues: of.queues.slice(0, -1) })
  return found
}

const STORM_MS_MIN = 1_000

function ofTime(of: Configuration): Configuration[] {
  return [0.5, 0.8]
    .map((part) => ({ ...of, stormMs: Math.round(of.stormMs * part) }))
    .filter(({ stormMs }) => stormMs >= STORM_MS_MIN)
}
