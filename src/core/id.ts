/** Ids of jobs, for callers that want to know one before they enqueue. */
import { realEnv } from './env.js'

/** A new UUIDv7 for `enqueue(kind, payload, { id })`: store it first, and an enqueue may be repeated without fear. */
export function newJobId(): string {
  return realEnv.id()
}
