/** Stores that are broken in what they do with dead letters and filters. */
import type { JobHistory } from '../../src/core/job.js'
import type { MatchRequest } from '../../src/storage/storage.js'
import type { Broken, Mutant } from './mutant.js'

export const MUTANTS_OF_DEAD: Mutant[] = [
  {
    name: 'each message is a group of its own',
    caught: [
      'deadGroups: what differs only in what varies is one group, the newest first, with its count and a sample',
    ],
    spoil(store) {
      respelled(store, (history) => history.entries.at(-1)?.error?.message.length.toString(16).padStart(12, '0'))
    },
  },
  {
    name: 'all failures are one',
    caught: [
      'deadGroups: what differs only in what varies is one group, the newest first, with its count and a sample',
      'match: dead letters by all that a filter says, the oldest end first',
      'list: dead letters by reason, by fingerprint and by when they ended',
    ],
    spoil(store) {
      respelled(store, () => '0123456789ab')
    },
  },
  {
    name: 'the oldest groups come first',
    caught: ['deadGroups: by queue and kind, no more than asked for, and it says where there are more'],
    spoil(store) {
      const deadGroups = store.inspect.deadGroups.bind(store.inspect)
      store.inspect.deadGroups = async (request) => {
        const { groups, complete } = await deadGroups(request)
        return { groups: groups.sort((a, b) => a.newestAt - b.newestAt), complete }
      }
    },
  },
  {
    name: 'groups that are left out are not spoken of',
    caught: ['deadGroups: by queue and kind, no more than asked for, and it says where there are more'],
    spoil(store) {
      const deadGroups = store.inspect.deadGroups.bind(store.inspect)
      store.inspect.deadGroups = async (request) => ({ ...(await deadGroups(request)), complete: true })
    },
  },
  {
    name: 'groups are of a failure, whatever the queue, kind and reason',
    caught: ['deadGroups: queues, kinds and reasons are apart; who died of no error has no fingerprint'],
    spoil(store) {
      const deadGroups = store.inspect.deadGroups.bind(store.inspect)
      store.inspect.deadGroups = async (request) => {
        const { groups, complete } = await deadGroups(request)
        return { groups: [...new Map(groups.map((group) => [group.fingerprint, group])).values()], complete }
      }
    },
  },
  {
    name: 'the first failure of a job decides its group for ever',
    caught: [
      'deadGroups: what was redriven or discarded has left its group, and dies into the group of its last failure',
    ],
    spoil(store) {
      respelled(store, (history) => history.entries.find((entry) => entry.fingerprint)?.fingerprint)
    },
  },
  {
    name: 'discarded letters keep their keys',
    caught: [
      'discard: nothing is left of a dead letter, its key is free, and it says what it met',
      'discard: an odd history stops nobody, and a key that others use by now stays theirs',
    ],
    spoil(store) {
      const discard = store.control.discard.bind(store.control)
      store.control.discard = async (ids, only) => {
        const { keys } = store.inside
        const remove = keys.delete.bind(keys)
        keys.delete = () => {}
        const answer = await discard(ids, only)
        keys.delete = remove
        return answer
      }
    },
  },
  {
    name: 'discard takes whatever it is given',
    caught: ['discard: nothing is left of a dead letter, its key is free, and it says what it met'],
    spoil(store) {
      const discard = store.control.discard.bind(store.control)
      store.control.discard = async (ids, only) => {
        const known = ids.map((id) => store.inside.jobs.get(id))
        const answers = await discard(ids, only)
        return answers.map((answer, at) => {
          if (answer === 'not dead') store.inside.jobs.remove(known[at]!)
          return answer === 'not dead' ? 'discarded' : answer
        })
      }
    },
  },
  {
    name: 'rounds are not counted',
    caught: [
      'redrive: through thirty rounds id, key, payload, priority and history stay, and the rounds are counted',
      'redrive: a dead letter is pending again with fresh attempts and all it was',
    ],
    spoil(store) {
      afterRedrive(store, (history) => ({ ...history, redrives: Math.min(1, history.redrives - 1) }))
    },
  },
  {
    name: 'a redrive begins a new history',
    caught: ['redrive: through thirty rounds id, key, payload, priority and history stay, and the rounds are counted'],
    spoil(store) {
      afterRedrive(store, (history) => ({ ...history, entries: history.entries.slice(-1) }))
    },
  },
  {
    name: 'the newest dead letters match first',
    caught: ['match: dead letters by all that a filter says, the oldest end first'],
    spoil(store) {
      const match = store.inspect.match.bind(store.inspect)
      store.inspect.match = async (request) => {
        const page = await match(request)
        return { ...page, jobs: page.jobs.reverse() }
      }
    },
  },
  ...(['queue', 'kind', 'reason', 'fingerprint'] as const).map(
    (left): Mutant => ({
      name: `a filter forgets the ${left}`,
      caught: ['match: dead letters by all that a filter says, the oldest end first'],
      spoil(store) {
        asked(store, ({ [left]: _, ...request }) => request)
      },
    }),
  ),
  {
    name: 'a filter of what waits forgets the kind',
    caught: ['match: what waits and what runs, by state, queue and kind'],
    spoil(store) {
      asked(store, ({ kind: _, ...request }) => request)
    },
  },
  {
    name: 'age is not looked at',
    caught: ['match: by age, of dead letters since their end and of all others since their enqueue'],
    spoil(store) {
      asked(store, ({ before: _, ...request }) => request)
    },
  },
  {
    name: 'pages of matches are counted from the start',
    caught: ['match: what leaves the state between two pages neither hides nor doubles another one'],
    spoil(store) {
      const match = store.inspect.match.bind(store.inspect)
      store.inspect.match = async ({ after = '0', limit, ...request }) => {
        const { jobs, nowMs } = await match({ ...request, limit: 10_000 })
        const end = Number(after) + limit
        return { jobs: jobs.slice(Number(after), end), next: end < jobs.length ? String(end) : null, nowMs }
      }
    },
  },
  {
    name: 'a page without a match is the last one',
    caught: ['match: a rare one is found among thousands of others, in pages that may be empty'],
    spoil(store) {
      const match = store.inspect.match.bind(store.inspect)
      store.inspect.match = async (request) => {
        const page = await match(request)
        return page.jobs.length === 0 ? { ...page, next: null } : page
      }
    },
  },
  {
    name: 'lists forget what the dead died of',
    caught: ['list: dead letters by reason, by fingerprint and by when they ended'],
    spoil(store) {
      const list = store.inspect.list.bind(store.inspect)
      store.inspect.list = async ({ fingerprint: _, ...request }) => list(request)
    },
  },
  {
    name: 'lists forget when the dead ended',
    caught: ['list: dead letters by reason, by fingerprint and by when they ended'],
    spoil(store) {
      const list = store.inspect.list.bind(store.inspect)
      store.inspect.list = async ({ endedAfter: _, ...request }) => list(request)
    },
  },
  {
    name: 'cancel forgets which states were meant',
    caught: [
      'cancel: of some states only, it leaves those in others as they are',
      'cancel: a job that was handed out since it was found waiting is not signalled',
    ],
    spoil({ control }) {
      const cancel = control.cancel.bind(control)
      control.cancel = async (ids) => cancel(ids)
    },
  },
  {
    name: 'whatever waits is in any state in which jobs wait',
    caught: ['cancel: of some states only, it leaves those in others as they are'],
    spoil({ control }) {
      const cancel = control.cancel.bind(control)
      control.cancel = async (ids, only) => {
        const waits = only?.states.some((state) => state !== 'running')
        return cancel(ids, waits ? { states: [...only!.states, 'ready', 'delayed', 'retrying'] } : only)
      }
    },
  },
  {
    name: 'what moved on is signalled all the same',
    caught: [
      'cancel: of some states only, it leaves those in others as they are',
      'cancel: a job that was handed out since it was found waiting is not signalled',
    ],
    spoil({ control, inside }) {
      const cancel = control.cancel.bind(control)
      control.cancel = async (ids, only) => {
        const answers = await cancel(ids, only)
        for (const id of ids) {
          const job = inside.jobs.get(id)
          if (job?.place === 'leased') job.cancelling = true
        }
        return answers
      }
    },
  },
  {
    name: 'retry forgets which states were meant',
    caught: ['retry: of some states only, it leaves those in others as they are'],
    spoil({ control }) {
      const retry = control.retry.bind(control)
      control.retry = async (ids) => retry(ids)
    },
  },
  {
    name: 'redrive takes letters that died anew',
    caught: ['redrive: of letters that ended before an instant, it leaves one that died anew'],
    spoil({ control }) {
      const redrive = control.redrive.bind(control)
      control.redrive = async (ids, { force }) => redrive(ids, { force })
    },
  },
  {
    name: 'redrive goes by when a letter first ended',
    caught: ['redrive: of letters that ended before an instant, it leaves one that died anew'],
    spoil({ control, inside }) {
      const redrive = control.redrive.bind(control)
      control.redrive = async (ids, { force, endedBefore = Number.POSITIVE_INFINITY }) => {
        const ended = (id: string): number | undefined =>
          inside.jobs.get(id)?.history?.entries.find(({ outcome }) => outcome === 'rejected')?.at
        const meant = ids.filter((id) => (ended(id) ?? 0) < endedBefore)
        const answers = await redrive(meant, { force })
        return ids.map((id) => answers[meant.indexOf(id)] ?? 'moved on')
      }
    },
  },
  {
    name: 'discard takes letters that died anew',
    caught: ['discard: of letters that ended before an instant, it leaves one that died anew, and its key'],
    spoil({ control }) {
      const discard = control.discard.bind(control)
      control.discard = async (ids) => discard(ids)
    },
  },
  {
    name: 'counting makes a queue',
    caught: ['counts: each job is counted in its place, in its queue'],
    spoil(store) {
      const counts = store.inspect.counts.bind(store.inspect)
      store.inspect.counts = async (queue) => {
        store.inside.queues.ensure(queue)
        return counts(queue)
      }
    },
  },
  {
    name: 'a start is taken to be when its beat came',
    caught: ['get: when the attempt that runs has started is known as soon as a beat told of it'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) =>
        beat({ ...request, started: request.started.map(([fence, ordinal]) => [fence, ordinal]) })
    },
  },
]

/** Every settlement brings another fingerprint than it should. */
function respelled(store: Broken, spell: (history: JobHistory) => string | undefined): void {
  const settle = store.settle.bind(store)
  store.settle = async (settlements) => {
    for (const settlement of settlements) {
      if (settlement.to !== 'dead') continue
      const last = settlement.history.entries.at(-1)!
      const print = spell(settlement.history)
      if (print === undefined) delete last.fingerprint
      else last.fingerprint = print
    }
    return settle(settlements)
  }
}

function afterRedrive(store: Broken, spoil: (history: JobHistory) => JobHistory): void {
  const redrive = store.control.redrive.bind(store.control)
  store.control.redrive = async (ids, options) => {
    const answers = await redrive(ids, options)
    for (const [at, id] of ids.entries()) {
      const row = store.inside.jobs.get(id)
      if (answers[at] === 'ok' && row?.history) row.history = spoil(row.history)
    }
    return answers
  }
}

function asked(store: Broken, spoil: (request: MatchRequest) => MatchRequest): void {
  const match = store.inspect.match.bind(store.inspect)
  store.inspect.match = async (request) => match(spoil(request))
}
