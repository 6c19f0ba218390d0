/** The checks, in the order in which they are shown: what each looks at, and who judges it. Called by doctor.ts. */
import type { Finding } from './finding.js'
import { judgeDays, judgeGrowth, judgeHolders, judgeVacuum } from './judge-growth.js'
import {
  type ClockLook,
  judgeAccess,
  judgeClock,
  judgeConnections,
  judgeDrift,
  judgeDurability,
  judgeHints,
  judgeIsolation,
  judgePools,
  judgeServer,
} from './judge-server.js'
import { judgeLeases, judgeTimeouts } from './judge-times.js'
import { judgeAbility, judgeCrashes, judgePromotion, judgeQueues, judgeWorkers } from './judge-work.js'
import { NotTold, type Site } from './site.js'

export interface Check {
  readonly name: string
  find(site: Site): Promise<Finding>
}

/** The first ones are slower, as connections come up; the best one says most. */
const LOOKS = 7

export const CHECKS: readonly Check[] = [
  {
    name: 'server',
    find: async (site) => {
      const looks = await clockLooks(site)
      const roundTripMs = Math.min(...looks.map(({ sentMs, receivedMs }) => receivedMs - sentMs))
      return judgeServer({ settings: await site.settings(), roundTripMs })
    },
  },
  {
    name: 'schema',
    find: async (site) => {
      const { setup, name } = site.storage
      if (setup === undefined) throw new NotTold(`the ${name} store has no schema`)
      return judgeDrift(await setup.drift(), site.schema)
    },
  },
  { name: 'rights', find: async (site) => judgeAccess(await site.database.access()) },
  { name: 'durability', find: async (site) => judgeDurability(await site.settings()) },
  { name: 'isolation', find: async (site) => judgeIsolation(await site.settings()) },
  { name: 'clock', find: async (site) => judgeClock(await clockLooks(site)) },
  { name: 'hints', find: async (site) => judgeHints(await site.diagnose.hints()) },
  {
    name: 'connections',
    find: async (site) => judgeConnections(await site.database.connections(), await site.workers()),
  },
  { name: 'pools', find: async (site) => judgePools(await site.workers()) },
  { name: 'snapshots', find: async (site) => judgeHolders(await site.database.holders()) },
  { name: 'vacuum', find: async (site) => judgeVacuum(await site.tables(), await site.settings()) },
  { name: 'growth', find: async (site) => judgeGrowth(await site.tables()) },
  { name: 'days', find: async (site) => judgeDays(await site.database.days(), await retentionOf(site)) },
  { name: 'queues', find: async (site) => judgeQueues(await site.queues(), await site.waiting()) },
  {
    name: 'ability',
    find: async (site) =>
      judgeAbility(await site.waiting(), { queues: await site.queues(), workers: await site.workers() }),
  },
  { name: 'promotion', find: async (site) => judgePromotion(await site.diagnose.overdue()) },
  { name: 'workers', find: async (site) => judgeWorkers(await site.workers()) },
  { name: 'leases', find: async (site) => judgeLeases(await site.workers(), await site.runs()) },
  { name: 'time-outs', find: async (site) => judgeTimeouts(await site.runs()) },
  { name: 'crashes', find: async (site) => judgeCrashes(await site.diagnose.crashes()) },
]

/** By the wall clock, which is what is compared, with the length of the look by the one that never jumps. */
async function clockLooks(site: Site): Promise<ClockLook[]> {
  const { env, diagnose } = site
  const looks: ClockLook[] = []
  for (let n = 0; n < LOOKS; n++) {
    const sentMs = env.now()
    const began = env.monotonic()
    const { nowMs: storeMs } = await diagnose.clock()
    looks.push({ sentMs, receivedMs: sentMs + (env.monotonic() - began), storeMs })
  }
  return looks
}

/** The shortest one counts: each worker prunes by its own. */
async function retentionOf(site: Site): Promise<number | undefined> {
  const told = (await site.workers()).flatMap(({ completedMs }) => (completedMs === undefined ? [] : [completedMs]))
  return told.length === 0 ? undefined : Math.min(...told)
}
