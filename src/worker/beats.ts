/** How beats reach the store: by a thread of their own, or inline. What heartbeat.ts starts and both implement. */

import type { Env } from '../core/env.js'
import type { Storage } from '../storage/storage.js'
import { BeatLoop, type Resume, type Snapshot, type Told } from './beat-loop.js'

export interface BeatsParts {
  readonly env: Env
  readonly storage: Storage
  readonly beatMs: number
  readonly snapshot: () => Snapshot
  readonly tell: (told: Told) => void
  readonly resume: () => Resume | undefined
}

export interface Beats {
  start(): void
  /** A beat out of turn. */
  now(): void
  /** Ends it; resolves when nothing of it is left. */
  stop(): Promise<void>
}

/**
 * Beats on the main loop, for stores that live in this process, and as a last resort. A main loop that does not
 * answer does not beat either, so there is no lag to tell.
 */
export function inlineBeats(parts: BeatsParts): Beats {
  const resume = parts.resume()
  const loop = new BeatLoop({
    env: parts.env,
    beatMs: parts.beatMs,
    snapshot: async () => ({ snapshot: parts.snapshot(), mainLagMs: 0 }),
    send: (beat) => parts.storage.beat(beat),
    tell: parts.tell,
    ...(resume ? { resume } : {}),
  })
  return { start: () => loop.now(), now: () => loop.now(), stop: async () => loop.stop() }
}
