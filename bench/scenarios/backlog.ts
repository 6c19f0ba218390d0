/**
 * Claims before a backlog of any depth: of a few thousand jobs, of a million, and of millions beside as many delayed and
 * more ended. The three are measured in turns, claim by claim, so that whatever the machine does it does to all of them.
 */

import { ClaimLoop } from '../claim-loop.js'
import { type Figures, hundredths, latencies, ratio } from '../figures.js'
import { type Filling, fill } from '../fill.js'
import { scenario } from '../scenario.js'
import type { Place, Setting } from '../setting.js'

const WARM_UP_CLAIMS = 30

interface Depth {
  place: Place
  filling: Required<Omit<Filling, 'kind'>>
  loop: ClaimLoop
  samplesMs: number[]
}

export const backlog = scenario({
  name: 'backlog',
  summary: 'claims with 10k, 1M and 3M jobs waiting, the last beside 3M delayed and 10M ended',
  options: {
    small: { type: 'whole', default: 10_000, quick: 1_000, doc: 'waiting jobs of the first' },
    middle: { type: 'whole', default: 1_000_000, quick: 3_000, doc: 'waiting jobs of the second' },
    waiting: { type: 'whole', default: 3_000_000, quick: 5_000, doc: 'waiting jobs of the third' },
    delayed: { type: 'whole', default: 3_000_000, quick: 5_000, doc: 'and its delayed ones' },
    ended: { type: 'whole', default: 10_000_000, quick: 10_000, doc: 'and its ended ones' },
    claims: { type: 'whole', default: 2_000, quick: 20, doc: 'claims of each' },
    batch: { type: 'whole', default: 10, doc: 'jobs of a claim: the slots of a worker with default options' },
  },
  async *run(setting, { small, middle, waiting, delayed, ended, claims, batch }) {
    const fillings = [
      { ready: small, delayed: 0, ended: 0 },
      { ready: middle, delayed: 0, ended: 0 },
      { ready: waiting, delayed, ended },
    ]
    const depths: Depth[] = []
    try {
      for (const filling of fillings) depths.push(await depthOf(setting, filling, batch))
      await inTurns(depths, claims)
      for (const depth of depths) yield figuresOf(depth, depths[0]!, { claims, batch })
    } finally {
      for (const { place } of depths) await place.drop()
    }
  },
})

async function depthOf(setting: Setting, filling: Required<Omit<Filling, 'kind'>>, batch: number): Promise<Depth> {
  const place = setting.place()
  await fill(setting, place, filling)
  const queue = await place.open()
  return { place, filling, loop: new ClaimLoop(queue, batch), samplesMs: [] }
}

async function inTurns(depths: Depth[], claims: number): Promise<void> {
  for (let claim = -WARM_UP_CLAIMS; claim < claims; claim++)
    for (const { loop, samplesMs } of depths) {
      const ms = await loop.turn()
      if (claim >= 0) samplesMs.push(ms)
    }
}

function figuresOf(depth: Depth, small: Depth, { claims, batch }: { claims: number; batch: number }): Figures {
  const { samplesMs, filling } = depth
  const own = latencies(samplesMs)
  const of = latencies(small.samplesMs)
  return {
    scenario: 'backlog',
    jobs: claims * batch,
    ...own,
    maxMs: hundredths(Math.max(...samplesMs)),
    ratioToSmall: ratio(own.p95Ms, of.p95Ms),
    ratioToSmallP50: ratio(own.p50Ms, of.p50Ms),
    waiting: filling.ready,
    delayed: filling.delayed,
    ended: filling.ended,
    claims,
    jobsOfAClaim: batch,
    measured: 'claims that bring the settlements of the batch before along; taken jobs are replaced in between',
  }
}
