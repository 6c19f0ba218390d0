/** The schemas of all stores. Each has its own, and one that is away is told. */
import type { Setup } from '../storage.js'
import type { Member } from './member.js'

export function setupOf(members: readonly Member[]): Setup {
  const each = async <T>(ask: (setup: Setup) => Promise<T[]>, told: (member: Member, one: T) => T): Promise<T[]> => {
    const all: T[] = []
    // One after the other: what was done in those before stays done, and doing it again does no harm.
    for (const member of members) all.push(...(await ask(member.storage.setup!)).map((one) => told(member, one)))
    return all
  }
  return {
    migrate: async () => ({
      applied: await each(
        async (setup) => (await setup.migrate()).applied,
        ({ name }, step) => `${name}: ${step}`,
      ),
    }),
    check: async () => {
      for (const { storage } of members) await storage.setup!.check()
    },
    drift: () =>
      each(
        (setup) => setup.drift(),
        ({ name }, one) => ({ ...one, sentence: `partition "${name}": ${one.sentence}` }),
      ),
  }
}
