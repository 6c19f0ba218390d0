/** Opens the store for beats only, on a connection of its own. Loaded by the thread that beats, named by `beatSource`. */
import type pg from 'pg'
import { realEnv } from '../../core/env.js'
import type { Beat, BeatAnswer } from '../storage.js'
import { Beats } from './beat.js'
import { Database } from './database.js'
import { Settle } from './settle.js'

export interface BeatData {
  client: pg.ClientConfig
  schema: string
}

/** `timeoutMs`: a beat without an answer for so long is given up, and the next one finds a new connection. */
export function openBeats(
  data: unknown,
  { timeoutMs }: { timeoutMs: number },
): { beat(beat: Beat): Promise<BeatAnswer>; close(): Promise<void> } {
  const { client, schema } = data as BeatData
  const database = new Database({ client, connections: 1, callTimeoutMs: timeoutMs, env: realEnv })
  const beats = new Beats(database, new Settle(database, schema), schema)
  return { beat: (beat) => beats.beat(beat), close: () => database.close() }
}
