/** `leasehold dead list`. Called by the declarations in syntax/. */
import type { DeadReason } from '../../core/job.js'
import type { Answer } from '../answer.js'
import type { Invocation } from '../invocation.js'
import { type ListFilter, listed } from './jobs-list.js'

const LIMIT = 50

export async function deadList(
  invocation: Invocation,
  options: ListFilter & { reason?: DeadReason; fingerprint?: string },
): Promise<Answer> {
  return listed(await invocation.store(), ['dead'], { limit: LIMIT, ...options }, 'no dead letters')
}
