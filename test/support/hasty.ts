/** A world in which pauses are shorter by a factor; time-outs are not. */
import { type Env, realEnv } from '../../src/core/env.js'

export function hasty(factor: number): Env {
  return { ...realEnv, sleep: (ms, signal) => realEnv.sleep(ms / factor, signal) }
}
