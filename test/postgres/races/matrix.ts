/**
 * Which operations meet at which rows, and which test plays each pair: the facts behind the matrix of docs/races.md. A
 * pair that takes the same rows and is neither played in each order nor explained fails test/docs/races.test.ts. Used by the docs' tests.
 */
import { MEETINGS } from './meetings.js'

/** The rows that an operation locks, moves or deletes, and those that it puts somewhere. */
interface Facts {
  readonly takes: readonly Row[]
  readonly puts: readonly Row[]
}

type Row = 'ready' | 'delayed' | 'lease' | 'dead' | 'record' | 'key' | 'expiry' | 'worker' | 'request' | 'queue' | 'day'

export const OPERATIONS: Readonly<Record<string, Facts>> = {
  enqueue: { takes: [], puts: ['ready'] },
  'enqueue with a key': { takes: ['key'], puts: ['ready', 'delayed', 'key', 'expiry'] },
  claim: { takes: ['ready', 'worker', 'request', 'queue'], puts: ['lease', 'request'] },
  settle: { takes: ['lease', 'expiry'], puts: ['record', 'ready', 'delayed', 'dead', 'expiry', 'day'] },
  beat: { takes: ['worker', 'request', 'lease', 'expiry'], puts: ['ready', 'record', 'dead', 'expiry'] },
  'take over': { takes: ['worker', 'request', 'lease'], puts: [] },
  unregister: { takes: ['worker', 'request', 'lease', 'expiry'], puts: ['ready', 'record', 'dead', 'expiry'] },
  promote: { takes: ['delayed'], puts: ['ready'] },
  expire: { takes: ['expiry', 'ready', 'delayed'], puts: ['dead'] },
  prune: { takes: ['dead', 'key', 'record', 'day', 'worker'], puts: ['day'] },
  cancel: { takes: ['ready', 'delayed', 'lease'], puts: ['record'] },
  retry: { takes: ['delayed'], puts: ['ready'] },
  redrive: { takes: ['dead'], puts: ['ready'] },
  discard: { takes: ['dead', 'key'], puts: [] },
  purge: { takes: ['ready', 'delayed', 'key'], puts: [] },
  'set a queue': { takes: ['queue'], puts: [] },
  'make a queue': { takes: ['queue'], puts: ['queue'] },
}

export type Pair = readonly [one: string, other: string]

/** Tests with a stage of their own, by name, and the pairs that they play, who is first before who is second. */
export const OWN: Readonly<Record<string, readonly Pair[]>> = {
  'claim: the same request at the same time on another connection waits, and gets the same batch': [['claim', 'claim']],
  'claim: when the first of two equal requests is rolled back, the second takes the jobs': [['claim', 'claim']],
  'claim: one that comes back short as others hold the heads is told so, and finds the rest when they let go': [
    ['claim', 'claim'],
  ],
  'enqueue: a job that commits long after its position was drawn is found behind the cursor': [['enqueue', 'claim']],
  'front range: a job that comes back by a commit which is late is found behind the cursor': [['retry', 'claim']],
  'claim first, pause second: the pause waits for nobody, and the next claim gets nothing': [['claim', 'set a queue']],
  'pause first, claim second: while the pause has not resolved the claim may still take, afterwards none does': [
    ['set a queue', 'claim'],
  ],
  'suspect: two claims at once for suspects of a queue: one gets one, the other none until the first is rolled back': [
    ['claim', 'claim'],
  ],
  'suspect: while one is claimed nobody gets another, and none after the commit either': [['claim', 'claim']],
  'suspect: a claim that has looked finds the guard taken, and takes what else there is': [['claim', 'claim']],
  'give-back at its instant of expiry: a sweep that finds the job running leaves its entry to whoever gives it back': [
    ['beat', 'expire'],
  ],
  'the same, the sweep first: who gives the job back waits for the sweep, and the next one finds the job': [
    ['expire', 'beat'],
  ],
  'cancel that has looked at what waits, a promotion before it looks at what runs: it looks again': [
    ['cancel', 'promote'],
    ['cancel', 'claim'],
  ],
  'claim that has looked and not taken: claim comes in between, and one of the two has the job': [['claim', 'claim']],
  'claim that has looked and not taken: cancel comes in between, and one of the two has the job': [['claim', 'cancel']],
  'claim that has looked and not taken: expire comes in between, and one of the two has the job': [['claim', 'expire']],
  'claim that has looked and not taken: purge comes in between, and one of the two has the job': [['claim', 'purge']],
  'key: freed by a discard while an enqueue decides: the job is stored with its key, never without': [
    ['enqueue with a key', 'discard'],
  ],
  'key: freed by a purge while an enqueue decides: the job is stored with its key, never without': [
    ['enqueue with a key', 'purge'],
  ],
  'key: freed by pruning while an enqueue decides: the job is stored with its key, never without': [
    ['enqueue with a key', 'prune'],
  ],
  'key: while a discard holds it, it is busy; rolled back it is the first job’s still': [
    ['discard', 'enqueue with a key'],
  ],
  'key: while a purge holds it, it is busy; rolled back it is the first job’s still': [['purge', 'enqueue with a key']],
  'key: while pruning holds it, it is busy; rolled back it is the first job’s still': [['prune', 'enqueue with a key']],
  'discard while its key is wanted: busy as long as it is open, free once it has committed': [
    ['discard', 'enqueue with a key'],
  ],
  'key: two first uses: the second is busy while the first is open, a duplicate once it has committed': [
    ['enqueue with a key', 'enqueue with a key'],
  ],
  'key: of two first uses the first is rolled back: the second has it': [['enqueue with a key', 'enqueue with a key']],
  'idempotency key: in an open transaction of somebody else it is busy, and only it': [
    ['enqueue with a key', 'enqueue with a key'],
  ],
  'idempotency key: 50 at once make one job, and all hear its id (B82)': [['enqueue with a key', 'enqueue with a key']],
  'key: pruning while its job is brought back: the key stays': [['redrive', 'prune']],
  'key: it runs out while its job moves from place to place: no second job': [['claim', 'enqueue with a key']],
  'chosen id: two with one id: the second is busy while the first is open, refused once it has committed': [
    ['enqueue with a key', 'enqueue with a key'],
  ],
  'chosen id: of two with one id the first is rolled back: the second is stored': [
    ['enqueue with a key', 'enqueue with a key'],
  ],
  'chosen id: of a job that moves from place to place it is known': [['claim', 'enqueue with a key']],
  'a worker that is being written off claims nothing more': [['take over', 'claim']],
  'a sweep that would have written a worker off is rolled back: its claim, which waited, takes': [
    ['take over', 'claim'],
  ],
  'what a worker claims while it is being judged is taken over by the next sweep, not lost': [['claim', 'take over']],
  'a sweeper that is judged while it adopts is passed by, and what it adopts has an owner': [
    ['take over', 'take over'],
  ],
  'a lease whose worker has no row is taken over all the same': [['take over', 'unregister']],
  'a lease whose worker has no row: of two sweeps at once one has it': [['take over', 'take over']],
  'a lease whose worker has no row, held by a cancel: a sweep takes the others, and the next one has it': [
    ['cancel', 'take over'],
  ],
  'a sweep locks no more of the dead than it adopts: of two at once each has some': [['take over', 'take over']],
  'cancel and take-over lock leases in one order, whoever held them': [['cancel', 'take over']],
  'cancel and take-over lock leases in one order, also of those that have no owner': [['cancel', 'take over']],
  'take-over that holds the leases, a cancel of all of them: the cancel waits, and marks them under their new fences': [
    ['take over', 'cancel'],
  ],
  'take-over that holds a lease, a cancel that waits for it and has an ownerless one: the next sweep takes that': [
    ['take over', 'cancel'],
  ],
  'beat: a claim in flight whose number was given up is waited for, and its jobs go back': [['claim', 'beat']],
  'beat: the same, and the claim is rolled back: nothing is there to go back': [['claim', 'beat']],
  'beat: a claim that runs after its number was given up takes nothing': [['beat', 'claim']],
  'good-bye: a claim that is under way is waited for, and what it took goes back': [['claim', 'unregister']],
  'good-bye: a claim that comes while the worker leaves gets nothing': [['unregister', 'claim']],
  'good-bye of a worker that leaves an adopted lease behind: a claim that comes late takes nothing, the lease is swept':
    [['unregister', 'claim']],
  'good-bye of a worker whose adopted lease is being settled: a sweep passes it by, and nothing is left for the next': [
    ['settle', 'unregister'],
    ['settle', 'take over'],
  ],
  'beats: of two at once the later one counts, whichever commits first': [['beat', 'beat']],
  'queue: made by two at once it is one, and both jobs are in it': [['make a queue', 'make a queue']],
  'queue: two that are made at once have numbers of their own': [['make a queue', 'make a queue']],
  'queue: when its maker is rolled back the other one makes it': [['make a queue', 'make a queue']],
  'queue: a level that two use for the first time at once is noted once, and both jobs are found': [
    ['make a queue', 'make a queue'],
  ],
  'drain: an enqueue that began before it may still come in, one that begins after it is refused': [
    ['enqueue', 'set a queue'],
  ],
  'purge: what is on its way from one waiting place to the other is not overlooked, however often it says more': [
    ['retry', 'purge'],
  ],
  'purge: what is enqueued while it runs does not make it go on for ever': [['purge', 'enqueue']],
  'a settlement that finds no table for the day makes it': [['settle', 'prune']],
  'a day that two make at once: the second waits, finds it made, and its settlement is stored as it is': [
    ['prune', 'settle'],
  ],
  'a reader of the records holds up neither a settlement nor the making of a day': [['settle', 'prune']],
  'pruning of records by two at once deletes each once, and neither waits': [['prune', 'prune']],
  'cancelAll of what is ready waits for a claim that has the job, and does not signal it': [['claim', 'cancel']],
  'cancelAll of what is ready, with a claim that is rolled back: it is cancelled': [['claim', 'cancel']],
  'cancelAll of all that waits takes a job that was promoted before its turn': [['retry', 'cancel']],
  'retryAll of delayed jobs leaves one that ran and failed meanwhile to its backoff': [
    ['retry', 'retry'],
    ['settle', 'retry'],
  ],
  'redriveAll leaves alone a letter that somebody redrove and that died anew before its turn': [
    ['redrive', 'redrive'],
    ['settle', 'redrive'],
  ],
  'discardAll leaves alone a letter that somebody redrove and that died anew before its turn': [
    ['redrive', 'discard'],
    ['settle', 'discard'],
  ],
  'discardAll waits for a redrive that has the letter; it is no letter any more, or it is discarded': [
    ['redrive', 'discard'],
  ],
  'two redrives of one filter, one held: each letter comes back once, and is counted once': [['redrive', 'redrive']],
  'an answer that is lost is made up for by what the histories show; a discard leaves none': [
    ['redrive', 'redrive'],
    ['discard', 'discard'],
    ['retry', 'retry'],
    ['cancel', 'cancel'],
  ],
  'dead letters: one that is being written is in no list before its commit, and is redriven after it': [
    ['settle', 'redrive'],
  ],
}

/** Pairs that take rows of one sort, and can still not harm each other. */
export const EXPLAINED: readonly { readonly pairs: readonly Pair[]; readonly why: string }[] = [
  {
    pairs: [
      ['prune', 'claim'],
      ['prune', 'beat'],
      ['prune', 'take over'],
      ['prune', 'unregister'],
    ],
    why: 'Pruning takes only rows of workers that said good-bye to an earlier version and hold nothing; a row that anybody has locked it passes by.',
  },
  {
    pairs: [
      ['purge', 'prune'],
      ['purge', 'discard'],
    ],
    why: 'The key of a job that waits is freed by a purge alone, that of a dead letter by a discard alone; pruning leaves both alone. A job is in one place.',
  },
  {
    pairs: [['unregister', 'expire']],
    why: 'A good-bye gives back by the same function as a beat does, and is played as one.',
  },
  {
    pairs: [['settle', 'expire']],
    why: 'Of a settlement that gives back, the statement on the entry is that of a beat, and is played as one; all other fates write none.',
  },
  {
    pairs: [
      ['set a queue', 'set a queue'],
      ['set a queue', 'make a queue'],
    ],
    why: 'Each is one update of one row and sets a column of its own; the second waits for the first and is added to it.',
  },
  {
    pairs: [['claim', 'make a queue']],
    why: 'A claim locks the row of a queue only to hand out a suspect, and passes by when it is locked: the suspect waits for the next claim.',
  },
]

const SETTLES_TOO = 'settle with a claim'

/** Whoever of the two is first. */
export function key([one, other]: Pair): string {
  return [one, other].toSorted().join(' × ')
}

/** One order of a pair. */
export function orderOf([first, second]: Pair): string {
  return `${first} first, ${second} second`
}

/** Of the tables of meetings; a settlement that rides on a claim is a settlement. */
function met(): Pair[] {
  const plain = (operation: string): string => (operation === SETTLES_TOO ? 'settle' : operation)
  return Object.values(MEETINGS)
    .flat()
    .map(({ first, second }) => [plain(first), plain(second)])
}

export function metPairs(): Set<string> {
  return new Set(met().map(key))
}

export function ownPairs(): Set<string> {
  return new Set(Object.values(OWN).flat().map(key))
}

export function playedOrders(): Set<string> {
  return new Set([...met(), ...Object.values(OWN).flat()].map(orderOf))
}

/** How a pair stands in the matrix. `takes`: both take rows of one sort. `sees`: one sees what the other has put, once that is committed. */
export function meetingOf([one, other]: Pair): 'takes' | 'sees' | 'apart' {
  const [a, b] = [OPERATIONS[one]!, OPERATIONS[other]!]
  if (a.takes.some((row) => b.takes.includes(row))) return 'takes'
  return a.takes.some((row) => b.puts.includes(row)) || b.takes.some((row) => a.puts.includes(row)) ? 'sees' : 'apart'
}

export function allPairs(): Pair[] {
  const names = Object.keys(OPERATIONS)
  return names.flatMap((one, at) => names.slice(at).map((other): Pair => [one, other]))
}
