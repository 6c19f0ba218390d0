/**
 * Fair shares. A level of a queue that has had a job with a tenant keeps a fair list: what becomes ready there stands by
 * virtual time, in which each job of a tenant takes `4096 / weight` steps. A tenant goes on behind what waits of it, and
 * starts at what is being served when nothing does. So tenants of weight 1 take turns, one of weight 3 gets three times
 * as much, whoever has 200,000 jobs waiting delays the others by nothing, and who comes back has saved nothing up.
 * Jobs without a tenant are one tenant together. Pure; called by the memory store, mirrored by the SQL of the PostgreSQL
 * store (functions/tenants.ts).
 */

export const WEIGHT_MIN = 0.01
export const WEIGHT_MAX = 100
export const TENANT_BYTES_MAX = 256

/** Steps of virtual time that a job of weight 1 takes. */
const JOB_STEPS = 4_096
/** Places in a step: who starts at one instant of virtual time stands there by the last byte of its id. */
const STEP_PLACES = 256
/** Whose share a job takes. */
export interface Share {
  tenant?: string | undefined
  weight?: number | undefined
}

/** Where a job that becomes ready stands. `behind`: the last place of its tenant in the list, or what is being served. */
export function fairPlace(behind: number, { weight }: Share, id: string): number {
  const steps = Math.floor(behind / STEP_PLACES) + stepsOf(weight)
  return steps * STEP_PLACES + Number.parseInt(id.slice(-2), 16)
}

/** How many steps of virtual time a job takes. */
export function stepsOf(weight = 1): number {
  return Math.max(1, Math.round(JOB_STEPS / weight))
}

/**
 * In a fair list nobody goes before who stands before it: where lists are merged by due time, each one counts as due no
 * earlier than those.
 */
export function inFairOrder<T extends { dueAt: number; dueNth?: number }>(list: readonly T[]): T[] {
  let last: T | undefined
  return list.map((each) => {
    if (last !== undefined && before(each, last)) {
      const { dueAt, dueNth } = last
      last = { ...each, dueAt, ...(dueNth === undefined ? {} : { dueNth }) }
    } else last = each
    return last
  })
}

type Due = { dueAt: number; dueNth?: number }

function before(a: Due, b: Due): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && (a.dueNth ?? 0) < (b.dueNth ?? 0))
}
