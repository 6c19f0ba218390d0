/** Writes down what a worker asks for and is given: its claims, as its store answers them. Wraps the store of a worker process. */

import type { Said } from '../src/testing/checker/history.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import type { Claim, ClaimRequest, Storage } from '../src/testing/index.js'
import { overlaid } from './overlay.js'

export function writesClaims(storage: Storage, log: LogFile): Storage {
  return overlaid(storage, {
    claim: async (request) => {
      const { worker, request: number } = request
      log.write({ what: 'claiming', worker, request: number })
      const claim = await storage.claim(request)
      log.writeAll([
        { what: 'claim answered', worker, request: number, status: claim.status },
        ...claimedIn(claim, request),
      ])
      return claim
    },
  })
}

function claimedIn({ leases, nowMs }: Claim, { worker, request }: ClaimRequest): Said[] {
  return leases.flatMap(({ fence, alone, jobs }) =>
    jobs.map(
      ({ id, queue, kind, priority, history, waitedMs }): Said => ({
        ...{ what: 'claimed', id, worker, fence, queue, kind, priority, attempt: (history?.attempts ?? 0) + 1 },
        ...{ waitedMs, claimedAt: nowMs, request, ...(alone ? { alone } : {}) },
      }),
    ),
  )
}
