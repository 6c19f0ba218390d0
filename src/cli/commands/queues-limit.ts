/** `leasehold queues limit`. Called by the declaration in syntax/queues.ts. */

import { formatDuration } from '../../core/duration.js'
import type { KeyLimit } from '../../core/keys.js'
import type { DepthLimit, RateLimit } from '../../core/limits.js'
import { checkName } from '../../core/name.js'
import { invalidOption } from '../../core/options.js'
import { grouped } from '../../core/show.js'
import type { LimitOptions, Queue, QueueLimits, RateOptions } from '../../index.js'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-codes.js'
import type { Invocation } from '../invocation.js'
import { isNone, type None, type StartRate } from '../values.js'

interface Given {
  concurrency?: number | None
  rate?: StartRate | None
  burst?: number
  perKey?: number | None
  depth?: number | None
  depthPerTenant?: number | None
  intake?: StartRate | None
  intakeBurst?: number
}

/** Without options it says what holds now. A queue may be limited before its first job; then it is said, as it may be a slip of the pen. */
export async function queuesLimit(invocation: Invocation, name: string, given: Given): Promise<Answer> {
  checkName(name, 'queue')
  const rates = ratesOf(given)
  const queue = await invocation.store()
  const before = await shown(queue, name)
  const isNew = before === undefined
  const limits = { ...rates, ...waitsOf(given, before?.depth ?? null) }
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

function ratesOf({ concurrency, rate, burst, intake, intakeBurst, perKey }: Given): LimitOptions {
  if (burst !== undefined && (rate === undefined || isNone(rate)))
    throw invalidOption('--burst', burst, 'it together with --rate: it is how many starts of the rate may come at once')
  if (intakeBurst !== undefined && (intake === undefined || isNone(intake)))
    throw invalidOption(
      '--intake-burst',
      intakeBurst,
      'it together with --intake: it is how many jobs may come at once',
    )
  return {
    ...(concurrency === undefined ? {} : { concurrency: isNone(concurrency) ? null : concurrency }),
    ...(rate === undefined ? {} : { rate: rateOf(rate, burst) }),
    ...(intake === undefined ? {} : { intake: rateOf(intake, intakeBurst) }),
    ...(perKey === undefined ? {} : { perKey: isNone(perKey) ? null : perKey }),
  }
}

function rateOf(rate: StartRate | None, burst: number | undefined): RateOptions | null {
  return isNone(rate) ? null : { ...rate, ...(burst === undefined ? {} : { burst }) }
}

/** What is not given stays as it is, limits of kinds as well. */
function waitsOf({ depth, depthPerTenant }: Given, before: DepthLimit | null): LimitOptions {
  if (depth === undefined && depthPerTenant === undefined) return {}
  const limit = depth ?? before?.limit ?? 'none'
  if (isNone(limit)) {
    if (depthPerTenant === undefined || isNone(depthPerTenant)) return { depth: null }
    throw invalidOption('--depth-per-tenant', depthPerTenant, 'it together with --depth: it is a part of what may wait')
  }
  const perTenant = depthPerTenant ?? before?.perTenant ?? 'none'
  return { depth: { limit, perTenant: isNone(perTenant) ? null : perTenant, kinds: before?.kinds ?? {} } }
}

async function shown(queue: Queue, name: string): Promise<QueueLimits | undefined> {
  return (await queue.queues()).find((view) => view.queue === name)?.limits
}

/** Undefined where there are none. */
export function limitsText({ concurrency, rate, depth, intake, perKey }: QueueLimits): string | undefined {
  const parts = [
    ...(concurrency === null ? [] : [`${grouped(concurrency)} at once`]),
    ...(rate === null ? [] : [rateText(rate)]),
    ...(depth === null ? [] : [depthText(depth)]),
    ...(intake === null ? [] : [`${rateText(intake)} coming in`]),
    ...(perKey === null ? [] : [`${grouped(perKey.limit)} of a key${ownText(perKey)}`]),
  ]
  return parts.length === 0 ? undefined : parts.join(', ')
}

/** Keys with a limit of their own are counted, not listed. */
function ownText({ keys }: KeyLimit): string {
  const own = Object.keys(keys).length
  return own === 0 ? '' : ` (${grouped(own)} with ${own === 1 ? 'a limit of its own' : 'limits of their own'})`
}

function depthText({ limit, perTenant, kinds }: DepthLimit): string {
  const parts = [
    ...(perTenant === null ? [] : [`${grouped(perTenant)} of a tenant`]),
    ...Object.entries(kinds).map(([kind, most]) => `${grouped(most)} of ${kind}`),
  ]
  return `${grouped(limit)} waiting${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`
}

function rateText({ limit, perMs, burst }: RateLimit): string {
  const span = formatDuration(perMs).replace(/^1(?=[a-z]+$)/, '')
  return `${grouped(limit)}/${span}${burst === limit ? '' : ` (burst ${grouped(burst)})`}`
}
