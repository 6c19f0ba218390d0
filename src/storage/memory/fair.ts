/** Fair shares of tenants: which levels have a fair list, where a job goes in it, and how far it was served. Called by lanes.ts, filled by the job table. */
import { fairPlace } from '../../core/tenants.js'
import { entryOf } from './entry.js'
import type { JobRow } from './jobs.js'
import { SortedList } from './sorted-list.js'

interface FairLevel {
  /** The last place that was claimed: who comes in starts there. */
  served: number
  /** What waits, apart for each tenant. */
  tenants: Map<string, SortedList<JobRow>>
  places: Set<number>
}

type Level = Pick<JobRow, 'queue' | 'priority'>

export class FairShares {
  private readonly levels = new Map<string, FairLevel>()

  /** From now on what becomes ready there goes into its fair list. */
  mark(level: Level): void {
    entryOf(this.levels, nameOf(level), () => ({ served: 0, tenants: new Map(), places: new Set<number>() }))
  }

  /** Where a job that becomes ready now stands; null: its level has no fair list. */
  placeFor(job: JobRow): number | null {
    const level = this.levels.get(nameOf(job))
    if (level === undefined) return null
    const last = level.tenants.get(tenantOf(job))?.last()?.fairPlace ?? 0
    let place = fairPlace(Math.max(last, level.served), job.spec, job.id)
    while (level.places.has(place)) place += 1
    return place
  }

  add(job: JobRow): void {
    const level = this.levels.get(nameOf(job))!
    level.places.add(job.fairPlace!)
    entryOf(level.tenants, tenantOf(job), () => new SortedList<JobRow>((each) => [each.fairPlace!, 0])).add(job)
  }

  delete(job: JobRow): void {
    const level = this.levels.get(nameOf(job))!
    const ofTenant = level.tenants.get(tenantOf(job))!
    level.places.delete(job.fairPlace!)
    ofTenant.delete(job)
    if (ofTenant.size === 0) level.tenants.delete(tenantOf(job))
  }

  /** A claim took it, and nothing after it of its list. */
  serve(job: JobRow): void {
    const level = this.levels.get(nameOf(job))!
    level.served = Math.max(level.served, job.fairPlace!)
  }
}

function nameOf({ queue, priority }: Level): string {
  return `${priority} ${queue}`
}

function tenantOf({ spec }: JobRow): string {
  return spec.tenant ?? ''
}
