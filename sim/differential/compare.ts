/** Plays one sequence on two stores and finds the first operation after which they differ. Called by differential.ts. */
import { isDeepStrictEqual } from 'node:util'
import type { JobView } from '../../src/storage/storage.js'
import { type Command, WORKERS } from './commands.js'
import { normalView } from './normal.js'
import { normalPlaces, type Places } from './places.js'
import { play } from './play.js'
import { type Side, Stage } from './stage.js'

/** What is in the stores is compared after so many operations, and at the end. */
const PLACES_INTERVAL = 10

export interface Difference {
  /** The number of the operation, from 0. */
  at: number
  command: Command
  /** Its answer, or what is in the stores after it. */
  of: 'answer' | 'places'
  /** By the name of the store. */
  model: unknown
  store: unknown
}

/** Undefined: there is none. Closes both sides. */
export async function compare(commands: readonly Command[], model: Side, store: Side): Promise<Difference | undefined> {
  const stages = [new Stage(model), new Stage(store)] as const
  try {
    for (const stage of stages) await begin(stage)
    for (const [at, command] of commands.entries()) {
      const [a, b] = [await play(stages[0], command), await play(stages[1], command)]
      if (!isDeepStrictEqual(a, b)) return { at, command, of: 'answer', model: a, store: b }
      if ((at + 1) % PLACES_INTERVAL !== 0 && at + 1 !== commands.length) continue
      const [inModel, inStore] = [await placesOn(stages[0]), await placesOn(stages[1])]
      if (!isDeepStrictEqual(inModel, inStore)) return { at, command, of: 'places', model: inModel, store: inStore }
    }
    return undefined
  } finally {
    await Promise.all([model.close(), store.close()])
  }
}

/** One seat stays empty: the store has never heard of who sits there. */
async function begin(stage: Stage): Promise<void> {
  for (let seat = 0; seat < WORKERS - 1; seat++) await play(stage, { op: 'register', worker: seat, step: 0 })
}

/** Every job as people see it, and every row behind. */
async function placesOn(stage: Stage): Promise<unknown> {
  const views = (await stage.store.inspect!.get(stage.ids)) as (JobView | null)[]
  const places = (await stage.side.places((fence) => stage.numberOf(fence))) as Places
  return JSON.parse(JSON.stringify({ jobs: views.map(normalView), ...(normalPlaces(places) as object) }))
}
