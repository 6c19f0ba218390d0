/** What a worker has done since it was started, in counts. Kept by its parts, shown by worker.stats() and health(). */

export interface Stats {
  /** Jobs that claims brought. */
  claimed: number
  /** Handlers started. */
  started: number
  completed: number
  /** Attempts that threw, timed out, were rejected or asked for a retry. */
  failed: number
  snoozed: number
  cancelled: number
  /** Jobs that went back to their place in the store: never started, or aborted at the end of a shutdown. */
  givenBack: number
  /** Jobs whose lease ended before they did. */
  lost: number
  /** Jobs that ended as dead letters by this worker. */
  dead: number
}

export function emptyStats(): Stats {
  return { claimed: 0, started: 0, completed: 0, failed: 0, snoozed: 0, cancelled: 0, givenBack: 0, lost: 0, dead: 0 }
}
