/** What is in a store, whatever keeps it: each place by its own rows. Filled by the sides, compared by compare.ts. */

export interface Places {
  /** By lane what is ready, in the order in which it is read. */
  lanes: Record<string, string[]>
  delayed: [id: string, dueAt: number, suspect: boolean][]
  blocked: [id: string, dueAt: number, suspect: boolean][]
  permits: [queue: string, key: string, id: string][]
  /** What waits and was never started, and when it is dead of that. */
  expiring: [id: string, at: number][]
  leases: LeaseRecord[]
  deadFences: [fence: number, open: number[], at: number][]
  keys: [kind: string, key: string, id: string, hash: string, until: number][]
  workers: [id: string, n: number, known: number, seenAt: number, mainSeenAt: number, steadySince: number][]
}

export interface LeaseRecord {
  fence: number
  worker: string
  request: number | null
  alone: boolean
  claimedAt: number
  ids: string[]
  /** A 1 for each job that is not settled; the marks below count for those alone. */
  open: string
  started: string
  cancelled: string
  crashed: string | null
}

export type Range = 'backlog' | 'front' | 'suspects' | 'fair'

export function textOfLane(queue: string, level: number, range: Range): string {
  return `${queue} ${level} ${range}`
}

export function bitsOf(marks: readonly boolean[]): string {
  return marks.map((mark) => (mark ? '1' : '0')).join('')
}

/** In one order, and to the millisecond. */
export function normalPlaces(places: Places): unknown {
  const { lanes, leases, ...lists } = places
  const sorted = Object.fromEntries(Object.entries(lists).map(([name, rows]) => [name, sortedRows(rows)]))
  return {
    lanes: Object.fromEntries(Object.entries(lanes).sort(([a], [b]) => (a < b ? -1 : 1))),
    leases: leases.map(normalLease).sort((a, b) => a.fence - b.fence),
    ...sorted,
  }
}

function normalLease(lease: LeaseRecord): LeaseRecord {
  const ofOpen = (marks: string): string => [...marks].map((mark, at) => (lease.open[at] === '1' ? mark : '-')).join('')
  return {
    ...lease,
    claimedAt: Math.round(lease.claimedAt),
    started: ofOpen(lease.started),
    cancelled: ofOpen(lease.cancelled),
  }
}

function sortedRows(rows: readonly unknown[][]): unknown[][] {
  const rounded = rows.map((row) => row.map((cell) => (typeof cell === 'number' ? Math.round(cell) : cell)))
  return rounded.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}
