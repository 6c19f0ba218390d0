/** The memory store on virtual time: the model that other stores are compared with. Opened by differential.ts and tests. */
import { MemoryStorage } from '../../src/storage/memory/index.js'
import { lanePosition } from '../../src/storage/memory/jobs.js'
import type { MemoryState } from '../../src/storage/memory/state.js'
import { VirtualTime } from '../../src/testing/virtual-time.js'
import { bitsOf, type Places, textOfLane } from './places.js'
import type { Side } from './stage.js'

/** A memory store that can be looked into. */
export class GlassStorage extends MemoryStorage {
  get inside(): MemoryState {
    return this.state
  }
}

/** `spoil`: breaks the store in some way, to see that it is noticed. */
export async function memorySide(spoil?: (store: GlassStorage) => void): Promise<Side> {
  const time = new VirtualTime()
  const store = new GlassStorage({ env: time })
  spoil?.(store)
  return {
    name: 'memory',
    store,
    nowMs: () => time.now(),
    advance: (ms) => time.advance(ms),
    places: async (numberOf) => placesOf(store.inside, numberOf),
    close: () => store.close(),
  }
}

function placesOf(state: MemoryState, numberOf: (fence: number) => number): Places {
  return {
    lanes: lanesOf(state),
    delayed: [...state.jobs.delayed.items()].map(({ id, dueAt, suspect }) => [id, dueAt, suspect]),
    blocked: [...state.jobs.inState('blocked').items()].map(({ id, dueAt, suspect }) => [id, dueAt, suspect]),
    permits: state.jobs.permits
      .held()
      .map(({ queue, key, ordered, id }) => [queue, `${ordered ? 'o' : 'l'}${key}`, id]),
    expiring: [...state.jobs.expiring.items()].map(({ id, expiresAt }) => [id, expiresAt!]),
    leases: leasesOf(state, numberOf),
    deadFences: state.leases.deadFences().map(({ fence, open, diedAt }) => [numberOf(fence), open, diedAt]),
    keys: state.keys.all().map(({ kind, key, id, payloadHash, until }) => [kind, key, id, payloadHash, until]),
    workers: state.workers.all().map((row) => {
      const { id, n, known, lastBeatAt, mainLagMs, steadySince } = row
      return [id, n, known, lastBeatAt, lastBeatAt - mainLagMs, steadySince]
    }),
  }
}

function lanesOf(state: MemoryState): Places['lanes'] {
  const lanes: Places['lanes'] = {}
  const ready = [...state.jobs.inState('ready').items()].sort((a, b) => lanePosition(a) - lanePosition(b))
  for (const job of ready) {
    const range = job.suspect ? 'suspects' : job.fairPlace !== null ? 'fair' : job.front ? 'front' : 'backlog'
    const lane = textOfLane(job.queue, job.priority, range)
    lanes[lane] = [...(lanes[lane] ?? []), job.id]
  }
  return lanes
}

function leasesOf(state: MemoryState, numberOf: (fence: number) => number): Places['leases'] {
  const leases = state.leases.holders().flatMap((worker) => state.leases.of(worker))
  return leases.map(({ fence, worker, request, alone, claimedAt, slots }) => ({
    fence: numberOf(fence),
    worker,
    request,
    alone,
    claimedAt,
    ids: slots.map(({ job }) => job.id),
    open: bitsOf(slots.map(({ open }) => open)),
    started: bitsOf(slots.map(({ crash, started }) => crash?.started ?? started)),
    cancelled: bitsOf(slots.map(({ open, job }) => open && job.cancelling)),
    crashed: slots.find(({ crash }) => crash !== null)?.crash?.worker ?? null,
  }))
}
