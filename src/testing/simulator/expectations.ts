/** How each job of a plan has to end, as the checker wants to know it. Called by the simulation. */
import type { End, Expectation } from '../checker/expectation.js'
import type { PlannedJob } from './plan.js'
import { EXPIRES_MS } from './work.js'

export function expectationOf(planned: PlannedJob): Expectation {
  const { sort, queue, priority, tenant, attempts, delayMs, key } = planned
  return {
    sort,
    ends: endsOf(planned),
    queue,
    priority,
    ...(tenant === undefined ? {} : { tenant: tenant.name, weight: tenant.weight }),
    attempts,
    delayMs,
    ...(sort === 'expiring' ? { expiresInMs: EXPIRES_MS } : {}),
    ...(key === undefined ? {} : { key }),
    delivery: sort === 'once' ? 'at-most-once' : 'at-least-once',
    keep: sort === 'unkept' ? 'none' : 'all',
  }
}

function endsOf({ sort }: PlannedJob): End[] {
  switch (sort) {
    case 'hopeless':
      return ['failed']
    case 'overtime':
      // A blocked loop lets further attempts run over their time.
      return ['completed', 'failed']
    case 'once':
      // Where its handler heeds a signal, as its worker stops or is unsure of its lease, it may have done its work.
      return ['completed', 'lost', 'failed']
    case 'expiring':
      return ['completed', 'expired']
    case 'rejected':
      return ['rejected']
    case 'poison':
      return ['poison']
    default:
      return ['completed']
  }
}
