/** The kinds of the drills, and what their handlers do: a line in the log of their process. Used by the drills and their workers. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BoundHandler, HandlerContext } from '../../core/handler.js'
import { defineJob, type JobKind } from '../../core/kind.js'
import type { LogFile } from '../../testing/checker/log-file.js'
import { failureText } from '../../testing/verify/drill-judge.js'
import {
  ATTEMPTS,
  BACKOFF_MS,
  DRILLS,
  type DrillName,
  type DrillWork,
  queueOf,
} from '../../testing/verify/drill-plan.js'

export type DrillKind = JobKind<DrillWork, DrillWork, unknown>

export const KINDS = Object.fromEntries(
  DRILLS.map((drill) => [
    drill,
    defineJob<DrillWork>(`verify.${drill}`, {
      queue: queueOf(drill),
      retry: { attempts: ATTEMPTS[drill], backoff: { type: 'fixed', base: BACKOFF_MS, jitter: 0 } },
    }),
  ]),
) as Record<DrillName, DrillKind>

export interface HandlerParts {
  /** Of this process. */
  name: string
  log: LogFile
  /** Where the drill and its handlers leave each other marks. */
  folder: string
  /** A stalled process wakes after so long also when nobody wakes it. */
  stallMsMax: number
}

const LOOK_MS = 20

export function handlerOf(drill: DrillName, parts: HandlerParts): BoundHandler {
  return KINDS[drill].handle((work, context) => played(parts, work, context))
}

async function played(parts: HandlerParts, work: DrillWork, context: HandlerContext): Promise<void> {
  const { log } = parts
  const { id, attempt, fence } = context
  const { n } = work
  log.write({ what: 'started', n, id, attempt, fence })
  if (work.act === 'poison') die(parts)
  await sleep(work.workMs, undefined, { signal: context.signal }).catch(() => {})
  if (context.signal.aborted) {
    log.write({ what: 'finished', n, id, fence, as: 'aborted' })
    throw context.signal.reason
  }
  if (work.act === 'fail') {
    log.write({ what: 'finished', n, id, fence, as: 'failed' })
    throw new Error(failureText(attempt))
  }
  if (work.act === 'block' && firstHere(parts, n)) standStill(parts, n)
  log.write({ what: 'effect', n, id, fence })
}

/** Nothing of this process runs any more, its threads included. */
function die({ log, name }: HandlerParts): never {
  log.write({ what: 'killed', process: name, moment: 'poison' })
  process.kill(process.pid, 'SIGKILL')
  for (;;) pause(1_000)
}

/** Whoever has the job later finds the mark, and works. */
function firstHere({ folder }: HandlerParts, n: number): boolean {
  try {
    writeFileSync(join(folder, `stalled-${n}`), '', { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

/** As a computation does that leaves the event loop no turn. The mark is the one that `wake` leaves. */
function standStill({ folder, stallMsMax }: HandlerParts, n: number): void {
  const until = performance.now() + stallMsMax
  while (!existsSync(wakePath(folder, n)) && performance.now() < until) pause(LOOK_MS)
}

export function wake(folder: string, n: number): void {
  writeFileSync(wakePath(folder, n), '')
}

function wakePath(folder: string, n: number): string {
  return join(folder, `wake-${n}`)
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
