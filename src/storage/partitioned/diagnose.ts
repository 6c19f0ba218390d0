/** How the queues move, over all stores. What cannot be put together of several is looked at in one of them. */
import { QueueError } from '../../core/errors.js'
import type { Diagnose, Overdue, QueuePace, WaitingKind } from '../storage.js'
import { readAll } from './asking.js'
import { summed } from './inspect.js'
import type { Member } from './member.js'

export function diagnoseOf(members: readonly Member[]): Diagnose {
  const ask = async <T>(of: (diagnose: Diagnose) => Promise<T>): Promise<{ all: T[]; whole: boolean }> => {
    const { heard, silent } = await readAll(members, ({ diagnose }) => of(diagnose!))
    return { all: heard.map(({ answer }) => answer), whole: silent.length === 0 }
  }
  return {
    pace: async (queue) => {
      const { all, whole } = await ask((diagnose) => diagnose.pace(queue))
      return paceOf(all, whole)
    },
    // Of people who look: an order of endings, and shares of runs, are of one store.
    endings: () => ofOneStore('the order in which jobs ended'),
    runs: () => ofOneStore('how long jobs ran'),
    clock: async () => ({
      nowMs: Math.max(...(await ask((diagnose) => diagnose.clock())).all.map(({ nowMs }) => nowMs)),
    }),
    waiting: async (queues) => {
      const { all, whole } = await ask((diagnose) => diagnose.waiting(queues))
      return waitingOf(all.flat(), whole)
    },
    overdue: async () => {
      const { all, whole } = await ask((diagnose) => diagnose.overdue())
      return overdueOf(all, whole)
    },
    crashes: async () => {
      const { all, whole } = await ask((diagnose) => diagnose.crashes())
      return {
        leasesEnded: summed(
          all.map(({ leasesEnded }) => leasesEnded),
          whole,
        ),
        suspects: summed(
          all.map(({ suspects }) => suspects),
          whole,
        ),
        poison: summed(
          all.map(({ poison }) => poison),
          whole,
        ),
        lost: summed(
          all.map(({ lost }) => lost),
          whole,
        ),
      }
    },
    hints: async () => {
      const { all } = await ask((diagnose) => diagnose.hints())
      return all.every((one) => one === 'arrive') ? 'arrive' : 'do not arrive'
    },
  }
}

async function ofOneStore(what: string): Promise<never> {
  const message = `a partitioned store does not put together ${what} in several stores: look at one of them by its own URL`
  throw new QueueError('CAPABILITY_MISSING', message)
}

function paceOf(all: readonly QueuePace[], whole: boolean): QueuePace {
  const waits = all.flatMap(({ oldestReadyMs }) => (oldestReadyMs === null ? [] : [oldestReadyMs]))
  return {
    oldestReadyMs: waits.length === 0 ? null : Math.max(...waits),
    completedMinute: summed(
      all.map(({ completedMinute }) => completedMinute),
      whole,
    ),
    completedHour: summed(
      all.map(({ completedHour }) => completedHour),
      whole,
    ),
  }
}

function waitingOf(all: readonly WaitingKind[], whole: boolean): WaitingKind[] {
  const kinds = new Map<string, WaitingKind>()
  for (const one of all) {
    const key = `${one.queue} ${one.kind}`
    const known = kinds.get(key)
    const count = summed(known === undefined ? [one.count] : [known.count, one.count], whole)
    kinds.set(key, { ...one, count, oldestMs: Math.max(one.oldestMs, known?.oldestMs ?? 0) })
  }
  return [...kinds.values()]
}

function overdueOf(all: readonly Overdue[], whole: boolean): Overdue {
  return {
    count: summed(
      all.map(({ count }) => count),
      whole,
    ),
    oldestMs: Math.max(...all.map(({ oldestMs }) => oldestMs)),
  }
}
