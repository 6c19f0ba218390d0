/** What the demo delivers: which webhooks, to whom, how urgent and when. Pure, by seed. Called by the demo. */

import { chance } from '../../core/chance.js'
import type { Tier } from '../../core/job.js'

/** What is at the other end: a live endpoint, or one of three that are dead in their own ways. */
export type Endpoint = 'live' | 'refused' | 'broken' | 'gone'

export interface Delivery {
  /** From 1, in the order of enqueue. */
  number: number
  /** Its meaning, and its idempotency key with the queue and with the receiver. */
  key: string
  customer: string
  endpoint: Endpoint
  priority: Tier
  delayMs: number
}

/** Share of the deliveries that one customer floods the queue with. */
const FLOOD_SHARE = 0.6
/** The flood begins after this share, so that others wait before and behind it. */
const FLOOD_FROM = 0.1
const CUSTOMERS = 40
const DEAD_SHARE = 0.03
const DELAYED_SHARE = 0.04
const DELAY_MS_MIN = 1_000
const DELAY_MS_MAX = 5_000

export function plan({ jobs, seed }: { jobs: number; seed: number }): Delivery[] {
  return Array.from({ length: jobs }, (_, index) => delivery(index, jobs, seed))
}

function delivery(index: number, jobs: number, seed: number): Delivery {
  const number = index + 1
  const key = `delivery:${String(number).padStart(6, '0')}`
  const draw = (word: string): number => chance(seed, key, word)
  const flooding = index >= jobs * FLOOD_FROM && index < jobs * (FLOOD_FROM + FLOOD_SHARE)
  return {
    number,
    key,
    customer: flooding ? 'customer-01' : customer(2 + Math.floor(draw('customer') * (CUSTOMERS - 1))),
    endpoint: draw('dead') < DEAD_SHARE ? deadEndpoint(draw('death')) : 'live',
    priority: priority(draw('priority')),
    delayMs: draw('delayed') < DELAYED_SHARE ? Math.round(between(draw('delay'), DELAY_MS_MIN, DELAY_MS_MAX)) : 0,
  }
}

function customer(number: number): string {
  return `customer-${String(number).padStart(2, '0')}`
}

function deadEndpoint(fraction: number): Endpoint {
  if (fraction < 1 / 3) return 'refused'
  return fraction < 2 / 3 ? 'broken' : 'gone'
}

function priority(fraction: number): Tier {
  if (fraction < 0.1) return 'high'
  return fraction < 0.8 ? 'normal' : 'low'
}

function between(fraction: number, min: number, max: number): number {
  return min + fraction * (max - min)
}
