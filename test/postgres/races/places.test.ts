/** Each pair of operations that want one job, in each place that a job can be in: played in each order. Listed in docs/races.md. */
import { after, before, test } from 'node:test'
import type { Scratch } from '../../support/postgres.js'
import { DEAD, DELAYED, LEASED, READY } from './actors.js'
import { nameOf, play, type Stage } from './meeting.js'
import { MEETINGS } from './meetings.js'
import { deadScene, delayedScene, leasedScene, raceStore, readyScene } from './scene.js'

let store: Scratch
before(async () => {
  store = await raceStore()
})
after(() => store.drop())

const STAGES: readonly Stage[] = [
  { place: 'ready', scene: () => readyScene(store), actors: READY },
  { place: 'delayed', scene: () => delayedScene(store), actors: DELAYED },
  { place: 'leased', scene: () => leasedScene(store), actors: LEASED },
  { place: 'dead', scene: () => deadScene(store), actors: DEAD },
]

for (const stage of STAGES)
  for (const meeting of MEETINGS[stage.place]!) test(nameOf(stage.place, meeting), () => play(stage, meeting))
