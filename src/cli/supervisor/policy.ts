/** The options by which processes are scaled, and the policy that they make. Read by supervise.ts and `scale`; declared in syntax/. */
import { availableParallelism } from 'node:os'
import { durationMs } from '../../core/duration.js'
import { badRelation, between, duration, invalidOption } from '../../core/options.js'
import type { ScalePolicy, ScaleSignal } from '../../core/scaling.js'

export const PROCESSES_MAX = 256
export const SCALE_SIGNALS = ['depth', 'wait'] as const satisfies readonly ScaleSignal[]
export const SCALE_DEFAULTS = { by: 'depth', every: '2s', coolDown: '1m' } as const
/** Due jobs a slot, and how long they may wait. */
export const TARGET_DEFAULTS = { depth: '4', wait: '5s' } as const

export const everyCheck = duration({ minMs: 100, maxMs: 3_600_000 })
export const coolDownCheck = duration({ maxMs: 86_400_000 })

const DEPTH_TARGET = between(0.1, 100_000)
const WAIT_TARGET = duration({ minMs: 10, maxMs: 86_400_000 })

export interface ScaleChoice {
  concurrency: number
  min?: number
  max?: number
  scaleBy?: ScaleSignal
  target?: string
  coolDown?: string
}

/** Throws INVALID_OPTION for a target of the other signal, and for bounds that do not go together. */
export function policyOf(choice: ScaleChoice): ScalePolicy {
  const by = choice.scaleBy ?? SCALE_DEFAULTS.by
  const min = choice.min ?? 1
  // As many as can compute at once, where nobody says.
  const max = choice.max ?? Math.max(min, availableParallelism())
  if (min > max) throw badRelation('--min', `${min} processes at least and ${max} at most do not go together`)
  return {
    min,
    max,
    by,
    target: targetOf(by, choice.target ?? TARGET_DEFAULTS[by]),
    slots: choice.concurrency,
    coolDownMs: durationMs(choice.coolDown ?? SCALE_DEFAULTS.coolDown, '--cool-down'),
  }
}

function targetOf(by: ScaleSignal, text: string): number {
  const isNumber = /^\d{1,6}(\.\d{1,3})?$/.test(text)
  if (by === 'depth') {
    if (isNumber) return DEPTH_TARGET(Number(text), '--target')
    throw invalidOption(
      '--target',
      text,
      'due jobs that may wait for each slot, such as 4 (a time is for --scale-by wait)',
    )
  }
  if (!isNumber) return WAIT_TARGET(text, '--target')
  throw invalidOption('--target', text, 'how long jobs may wait, such as 5s (a number is for --scale-by depth)')
}
