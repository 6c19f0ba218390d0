/** Stores that are broken in what they tell of one job: `inspect.facts`. */
import type { JobFacts } from '../../src/core/job-facts.js'
import type { Broken, Mutant } from './mutant.js'

/** A store that tells other facts than it has. */
function telling(
  name: string,
  caught: string[],
  change: (facts: JobFacts, store: Broken) => Partial<JobFacts>,
): Mutant {
  return {
    name,
    caught: caught.map((title) => `facts: ${title}`),
    spoil(store) {
      const facts = store.inspect.facts.bind(store.inspect)
      store.inspect.facts = async (id) => {
        const told = await facts(id)
        return told === null ? null : { ...told, ...change(told, store) }
      }
    },
  }
}

const RANK = 'the rank is the place in which claims come to a job'
const ABLE = 'only workers that are alive, serve the queue and have the kind count as able'
const RUNS = 'who runs a job is told, since when, and whether its lease is over'
const LIMITS = 'a limit that is used up is told, with who uses it and until when'
const SUSPECT = 'a suspect waits for the one of its queue that runs'

export const MUTANTS_OF_FACTS: Mutant[] = [
  telling('facts have no clock', ['a job is explained in each of its places'], () => ({ nowMs: 0 })),
  telling('pauses are not among the facts', ['all that holds a job is told, what decides first'], ({ queue }) => ({
    queue: { ...queue, paused: false },
  })),
  telling('workers of all queues are told as serving', [ABLE], ({ workers }, { inside }) => ({
    workers: inside.workers
      .all()
      .map(({ id, info }) => workers.find((worker) => worker.id === id) ?? { ...info, id, jobs: 0 }),
  })),
  telling(
    'dead workers are told as alive',
    [ABLE, 'a worker whose main loop has been silent for a lease is not alive'],
    (_, { inside }) => ({
      workers: inside.workers
        .all()
        .filter(({ info }) => info.queues.includes('q'))
        .map(({ id, info }) => ({ ...info, id, jobs: 0 })),
    }),
  ),
  telling('kinds of workers are not told', [ABLE, RANK], ({ workers }) => ({
    workers: workers.map(({ kinds: _, ...worker }) => worker),
  })),
  telling(
    'what workers hold is not told',
    ['a job that goes with the next claim is told so, and goes with it'],
    ({ workers }) => ({
      workers: workers.map((worker) => ({ ...worker, jobs: 0 })),
    }),
  ),
  telling('what came back is not among the lists', [RANK], ({ lists }) => ({
    lists: lists.filter(({ range, own }) => range !== 'front' || own !== undefined),
  })),
  telling(
    'a job stands one further ahead than it does',
    ['a job that goes with the next claim is told so, and goes with it'],
    ({ lists }) => ({
      lists: lists.map((list) => (list.own === undefined ? list : { ...list, own: Math.max(0, list.own - 1) })),
    }),
  ),
  telling('each queue has the same order', [RANK], ({ queue }) => ({ queue: { ...queue, order: 'ageing' } })),
  telling(
    'a list that was cut off is told as whole',
    ['far back in a long list a job is at least so far back'],
    ({ lists }) => ({
      lists: lists.map((list) => ({ ...list, cut: false })),
    }),
  ),
  telling('a job that was taken over is told as claimed', [RUNS], ({ lease }) => ({
    lease: lease === null ? null : { ...lease, adopted: false },
  })),
  telling('the lag of a main loop is not told', [RUNS], ({ lease }) => ({
    lease: lease?.holder ? { ...lease, holder: { ...lease.holder, mainLagMs: 0 } } : lease,
  })),
  telling('limits are not told', [LIMITS], ({ queue: { concurrency: _, rate: _rate, ...queue } }) => ({ queue })),
  telling('who holds a permit is not told', [LIMITS], ({ queue }) => ({
    queue: queue.concurrency === undefined ? queue : { ...queue, concurrency: { ...queue.concurrency, holders: [] } },
  })),
  telling('what a limit leaves is not told', [LIMITS], ({ queue }) => ({
    queue:
      queue.rate === undefined || queue.rate.tokens === 0 ? queue : { ...queue, rate: { ...queue.rate, tokens: 9 } },
  })),
  telling('the suspect that runs is not told', [SUSPECT], () => ({ suspectRunning: null })),
  telling('suspects are told in the order in which they came', [SUSPECT], ({ lists }) => ({
    lists: lists.map((list) =>
      list.range !== 'suspects' || list.own === undefined ? list : { ...list, own: list.entries.length - 1 - list.own },
    ),
  })),
]
