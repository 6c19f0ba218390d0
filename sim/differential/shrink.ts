/**
 * Makes a sequence that shows a difference smaller: what comes after it goes first, then as many operations as can, then
 * the numbers inside of the rest, by the shrinkers of fast-check. Called by differential.ts.
 */
import type fc from 'fast-check'
import { realEnv } from '../../src/core/env.js'
import type { Command } from './commands.js'
import type { Difference } from './compare.js'

export interface Shown {
  commands: Command[]
  difference: Difference
}

/** Plays a sequence on fresh stores. */
export type Trial = (commands: Command[]) => Promise<Difference | undefined>

export async function shrunk(
  shown: Shown,
  arbitrary: fc.Arbitrary<Command[]>,
  trial: Trial,
  shrinkMs: number,
): Promise<Shown> {
  const until = realEnv.monotonic() + shrinkMs
  const tried = async (commands: Command[]): Promise<Shown | undefined> => {
    if (realEnv.monotonic() > until) return undefined
    const difference = await trial(commands)
    return difference && cut({ commands, difference })
  }
  const fewer = await withFewer(cut(shown), tried)
  return withSmaller(fewer, arbitrary, tried)
}

type Tried = (commands: Command[]) => Promise<Shown | undefined>

/** Nothing after the difference has made it. */
function cut({ commands, difference }: Shown): Shown {
  return { commands: commands.slice(0, difference.at + 1), difference }
}

/** Halves, quarters and so on are left out, from the end, as long as the difference stays. */
async function withFewer(shown: Shown, tried: Tried): Promise<Shown> {
  let best = shown
  for (let size = best.commands.length >> 1; size >= 1; size >>= 1) {
    for (let end = best.commands.length; end > 0; end -= size) {
      const rest = best.commands.filter((_, at) => at < end - size || at >= end)
      if (rest.length === 0 || rest.length === best.commands.length) continue
      best = (await tried(rest)) ?? best
    }
  }
  return best
}

async function withSmaller(shown: Shown, arbitrary: fc.Arbitrary<Command[]>, tried: Tried): Promise<Shown> {
  for (const { value } of arbitrary.shrink(shown.commands, undefined)) {
    const smaller = await tried(value)
    if (smaller !== undefined) return withSmaller(smaller, arbitrary, tried)
  }
  return shown
}
