/**
 * When which disaster comes over whom, drawn before the run: a fault that is switched off moves no other one. Pure; called
 * by the simulation.
 */
import type { Configuration } from './configuration.js'
import { Draws } from './draws.js'

/** Comes over whoever is in the seat then. */
export type DisasterOfSeat = { at: number; seat: number } & (
  | { what: 'kill' | 'deploy' }
  | { what: 'block' | 'freeze' | 'clock jump'; ms: number }
)

export type Disaster = DisasterOfSeat | { at: number; what: 'restart' | 'read-only'; ms: number }

const MINUTE_MS = 60_000

/** `seats`: of workers first, then of producers. */
export function weatherOf(configuration: Configuration, seats: number): Disaster[] {
  const { seed, stormMs, faults, worker } = configuration
  const disasters: Disaster[] = []
  const draws = (...words: (string | number)[]): Draws => new Draws(seed).fork('weather', ...words)
  const often = (perMinute: number, seat: number, word: string, add: (at: number, draws: Draws) => Disaster): void => {
    const own = draws(word, seat)
    for (const at of instants(own, perMinute, stormMs)) disasters.push(add(at, own))
  }
  for (let seat = 0; seat < seats; seat++) {
    often(faults.killsPerMinute, seat, 'kill', (at) => ({ what: 'kill', at, seat }))
    often(faults.deploysPerMinute, seat, 'deploy', (at) => ({ what: 'deploy', at, seat }))
    often(faults.blocksPerMinute, seat, 'block', (at, own) => {
      return { what: 'block', at, seat, ms: own.between(50, worker.leaseMs * 0.9) }
    })
    often(faults.freezesPerMinute, seat, 'freeze', (at, own) => {
      return { what: 'freeze', at, seat, ms: own.between(worker.leaseMs, worker.leaseMs * 4) }
    })
    often(faults.clockJumpsPerMinute, seat, 'clock', (at, own) => {
      return { what: 'clock jump', at, seat, ms: own.between(-10 * MINUTE_MS, 10 * MINUTE_MS) }
    })
  }
  const ofStore = (count: number, what: 'restart' | 'read-only'): void => {
    const own = draws(what)
    for (let i = 0; i < count; i++)
      disasters.push({ what, at: own.between(0, stormMs), ms: own.between(200, own.pick([2_000, 10_000, 25_000])) })
  }
  ofStore(faults.storeRestarts, 'restart')
  ofStore(faults.readOnlySpells, 'read-only')
  return disasters.sort((a, b) => a.at - b.at)
}

/** Some moments of the storm, so often on average. */
function instants(draws: Draws, perMinute: number, untilMs: number): number[] {
  if (perMinute === 0) return []
  const found: number[] = []
  const meanMs = MINUTE_MS / perMinute
  for (let at = draws.between(0, 2 * meanMs); at < untilMs; at += draws.between(0, 2 * meanMs)) found.push(at)
  return found
}
