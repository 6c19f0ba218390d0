/** `leasehold queues limit`. Called by the declaration in syntax/queues.ts. */

import { formatDuration } from '../../core/duration.js'
import type { KeyLimit } from '../../core/keys.js'
import type { RateLimit } from '../../core/limits.js'
import { checkName } from '../../core/name.js'
import { invalidOption } from '../../core/options.js'
import { grouped } from '../../core/show.js'
import type { LimitOptions, Queue, QueueLimits } from '../../index.js'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-codes.js'
import type { Invocation } from '../invocation.js'
import { isNone, type None, type StartRate } from '../values.js'

interface Given {
  concurrency?: number | None
  rate?: StartRate | None
  burst?: number
  perKey?: number | None
}

/** Without options it says what holds now. A queue may be limited before its first job; then it is said, as it may be a slip of the pen. */
export async function queuesLimit(invocation: Invocation, name: string, given: Given): Promise<Answer> {
  checkName(name, 'queue')
  const limits = limitsOf(given)
  const queue = await invocation.store()
  const isNew = (await shown(queue, name)) === undefined
  const changes = Object.keys(limits).length > 0
  if (isNew && !changes)
    return {
      document: { queue: name, status: 'unknown' },
      text: () => `${name}: no such queue`,
      exit: EXIT.notFound,
    }
  if (changes) await queue.limit(name, limits)
  const now = (await shown(queue, name))!
  const said = `${name}: ${limitsText(now) ?? 'no limits'}`
  return {
    document: { queue: name, limits: now, isNew },
    text: () => (isNew ? `${said} (a new queue: it has had no job yet)` : said),
  }
}

function limitsOf({ concurrency, rate, burst, perKey }: Given): LimitOptions {
  const starts = isNone(rate) ? null : rate
  if (burst !== undefined && !starts)
    throw invalidOption('--burst', burst, 'it together with --rate: it is how many starts of the rate may come at once')
  return {
    ...(concurrency === undefined ? {} : { concurrency: isNone(concurrency) ? null : concurrency }),
    ...(starts === undefined ? {} : { rate: starts && { ...starts, ...(burst === undefined ? {} : { burst }) } }),
    ...(perKey === undefined ? {} : { perKey: isNone(perKey) ? null : perKey }),
  }
}

async function shown(queue: Queue, name: string): Promise<QueueLimits | undefined> {
  return (await queue.queues()).find((view) => view.queue === name)?.limits
}

/** Undefined where there are none. */
export function limitsText({ concurrency, rate, perKey }: QueueLimits): string | undefined {
  const parts = [
    ...(concurrency === null ? [] : [`${grouped(concurrency)} at once`]),
    ...(rate === null ? [] : [rateText(rate)]),
    ...(perKey === null ? [] : [`${grouped(perKey.limit)} of a key${ownText(perKey)}`]),
  ]
  return parts.length === 0 ? undefined : parts.join(', ')
}

/** Keys with a limit of their own are counted, not listed. */
function ownText({ keys }: KeyLimit): string {
  const own = Object.keys(keys).length
  return own === 0 ? '' : ` (${grouped(own)} with ${own === 1 ? 'a limit of its own' : 'limits of their own'})`
}

function rateText({ limit, perMs, burst }: RateLimit): string {
  const span = formatDuration(perMs).replace(/^1(?=[a-z]+$)/, '')
  return `${grouped(limit)}/${span}${burst === limit ? '' : ` (burst ${grouped(burst)})`}`
}
