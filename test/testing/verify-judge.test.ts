/** The judge of the drills of verify: a drill that went well is kept, and each thing that may go wrong breaks its own promise. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { HistoryEvent, StoreRecord, Witnessed } from '../../src/testing/checker/history.js'
import { storiesOf } from '../../src/testing/checker/stories.js'
import { type DrillNotes, failureText, judgeDrill } from '../../src/testing/verify/drill-judge.js'
import { type DrillJob, type DrillName, heldMax, jobsOf, PACES } from '../../src/testing/verify/drill-plan.js'
import { DrillScene } from '../../src/testing/verify/drill-scene.js'

/** A drill as it was seen: who wrote what, in order; and what the store has at the end. */
interface Seen {
  jobs: DrillJob[]
  events: [process: string, event: HistoryEvent][]
  records: StoreRecord[]
  notes: DrillNotes
}

/** The promises that are broken. */
function brokenIn(drill: DrillName, { jobs, events, records, notes }: Seen): string[] {
  const scene = new DrillScene()
  const witnessed = underFences(events)
  for (const one of witnessed) scene.add(one)
  const { scene: told } = storiesOf({ events: witnessed, records, leaseMs: PACES.quick.leaseMs })
  const byNumber = new Map(records.map((record) => [record.n, record]))
  const report = judgeDrill(drill, { jobs, scene, told, records: byNumber, notes })
  const broken = report.promises.filter(({ verdict }) => verdict === 'broken')
  assert.equal(report.verdict, broken.length > 0 ? 'broken' : 'kept')
  return broken.map(({ promise }) => promise)
}

/** A run ends under the fence that it has begun with. */
function underFences(events: Seen['events']): Witnessed[] {
  const fences = new Map<string, number>()
  return events.map(([process, event]) => {
    if (event.what === 'started') fences.set(`${process} ${event.n}`, event.fence)
    if (event.what !== 'effect') return { process, event }
    return { process, event: { ...event, fence: fences.get(`${process} ${event.n}`) ?? event.fence } }
  })
}

const id = (n: number): string => `job ${n}`

function started(process: string, n: number, at: number, attempt = 1): [string, HistoryEvent] {
  return [process, { at, what: 'started', n, id: id(n), attempt, fence: at }]
}

function effect(process: string, n: number, at: number): [string, HistoryEvent] {
  return [process, { at, what: 'effect', n, id: id(n), fence: at }]
}

function record(n: number, more: Partial<StoreRecord> = {}): StoreRecord {
  return { id: id(n), n, state: 'completed', attempts: 1, crashes: 0, crashesAlone: 0, ...more }
}

function up(process: string, worker = process): [string, HistoryEvent] {
  return [process, { at: 0, what: 'worker', worker, is: 'up' }]
}

/** Without the events of which `test` holds. */
function without(seen: Seen, test: (process: string, event: HistoryEvent) => boolean): Seen {
  return { ...seen, events: seen.events.filter(([process, event]) => !test(process, event)) }
}

function mapped(seen: Seen, change: (event: HistoryEvent) => HistoryEvent): Seen {
  return { ...seen, events: seen.events.map(([process, event]) => [process, change(event)]) }
}

// The drill `kill`.

function killed(): Seen {
  const jobs = jobsOf('kill', 0, PACES.quick).slice(0, 2)
  const [one, two] = jobs.map(({ n }) => n) as [number, number]
  return {
    jobs,
    events: [
      up('a'),
      up('b'),
      started('a', one, 10),
      started('b', two, 11),
      ['driver', { at: 500, what: 'killed', process: 'a', moment: 'mid-job' }],
      effect('b', two, 900),
      ['b', { at: 2_600, what: 'took over', worker: 'b', deadWorker: 'a', jobs: 1 }],
      started('b', one, 2_700, 2),
      effect('b', one, 3_000),
    ],
    records: [record(one, { attempts: 2, crashes: 1 }), record(two)],
    notes: {},
  }
}

test('kill: what ran again elsewhere with the next attempt is kept', () => {
  assert.deepEqual(brokenIn('kill', killed()), [])
})

test('kill: a job that never runs again, an attempt that is not counted, a record that is gone', () => {
  const seen = killed()
  const [n] = seen.jobs.map((job) => job.n)
  const never = without(seen, (_, event) => event.at > 2_600)
  assert.match(brokenIn('kill', never)[0]!, /taken over/)
  const uncounted = mapped(seen, (event) => (event.what === 'started' ? { ...event, attempt: 1 } : event))
  assert.deepEqual(brokenIn('kill', uncounted), ['an attempt that had begun counts'])
  const gone = { ...seen, records: seen.records.filter((one) => one.n !== n) }
  assert.deepEqual(brokenIn('kill', gone), ['nothing is lost'])
})

test('kill: a drill in which nothing was killed in mid-job has shown nothing', () => {
  const nobody = without(killed(), (_, event) => event.what === 'killed')
  assert.ok(brokenIn('kill', nobody).length > 0)
})

// The drill `stall`.

function stalled(): Seen {
  const jobs = jobsOf('stall', 0, PACES.quick)
  const n = jobs[0]!.n
  const later = jobs.at(-1)!.n
  const settled = (process: string, at: number, as: 'lost' | 'completed'): [string, HistoryEvent] => [
    process,
    { at, what: 'settled', id: id(n), worker: process, as },
  ]
  return {
    jobs,
    events: [
      up('a', 'a1'),
      started('a', n, 10),
      started('b', n, 3_000, 2),
      effect('b', n, 3_100),
      settled('b', 3_110, 'completed'),
      effect('a', n, 3_200),
      settled('a', 3_210, 'lost'),
      up('a', 'a2'),
      started('a', later, 3_400),
    ],
    records: jobs.map((job) => record(job.n)),
    notes: {},
  }
}

test('stall: a late settlement that is refused, and a worker that works on, are kept', () => {
  assert.deepEqual(brokenIn('stall', stalled()), [])
})

test('stall: nobody took over; the late settlement was accepted; the woken worker does nothing', () => {
  const alone = without(stalled(), (process) => process === 'b')
  assert.ok(brokenIn('stall', alone).some((promise) => /loses its jobs/.test(promise)))
  const accepted = mapped(stalled(), (event) => (event.what === 'settled' ? { ...event, as: 'completed' } : event))
  assert.deepEqual(brokenIn('stall', accepted), ['what it says of them when it wakes changes nothing'])
  const idle = without(stalled(), (_, event) => event.what === 'started' && event.at === 3_400)
  assert.deepEqual(brokenIn('stall', idle), ['it works again, under a new identity'])
})

// The drill `saturate`.

function saturated(atOnce: number, ahead: number, notes: DrillNotes = {}): Seen {
  const jobs = jobsOf('saturate', 0, PACES.quick)
  const events: [string, HistoryEvent][] = []
  let at = 0
  for (let from = 0; from < jobs.length; from += atOnce) {
    const batch = jobs.slice(from, from + atOnce)
    const claimed = from === 0 ? jobs.slice(0, atOnce + ahead) : jobs.slice(from + ahead, from + ahead + atOnce)
    for (const { n } of claimed)
      events.push(['a', { at: ++at, what: 'claimed', id: id(n), worker: 'a', fence: 1, queue: 'q', attempt: 1 }])
    for (const { n } of batch) events.push(started('a', n, ++at))
    for (const { n } of batch) events.push(effect('a', n, ++at))
  }
  const all = { mostWaiting: 300, enqueueMs: 100, workMs: 2_000, memoryFirstMb: 70, memoryMostMb: 75, ...notes }
  return { jobs, events, records: jobs.map(({ n }) => record(n)), notes: all }
}

test('saturate: as many as there are slots, a few ahead, and the rest in the store, is kept', () => {
  assert.deepEqual(brokenIn('saturate', saturated(4, heldMax(4) - 4)), [])
})

test('saturate: too many at once, too many held, nothing that waits, a memory that grows', () => {
  assert.match(brokenIn('saturate', saturated(5, 4)).join(), /no worker runs more/)
  assert.match(brokenIn('saturate', saturated(4, heldMax(4) - 3)).join(), /nor holds more/)
  assert.match(brokenIn('saturate', saturated(4, 4, { mostWaiting: 3 })).join(), /the rest waits/)
  assert.match(brokenIn('saturate', saturated(4, 4, { memoryMostMb: 500 })).join(), /memory/)
})

// The drill `poison`.

function poisoned(): Seen {
  const jobs = jobsOf('poison', 0, PACES.quick)
  const poison = jobs.find(({ act }) => act === 'poison')!.n
  const neighbour = jobs[0]!.n
  const crash = (at: number, alone: boolean): [string, HistoryEvent] => [
    'keeper',
    { at, what: 'crash noted', id: id(poison), deadWorker: `w${at}`, started: alone, alone },
  ]
  return {
    jobs,
    events: [
      started('a', neighbour, 5),
      started('a', poison, 10),
      crash(2_000, false),
      started('b', poison, 2_010),
      crash(4_000, false),
      started('c', poison, 4_200),
      crash(6_000, true),
      started('d', poison, 6_200),
      crash(8_000, true),
    ],
    records: jobs.map(({ n }) =>
      n === poison ? record(n, { state: 'dead', reason: 'poison', crashes: 4, crashesAlone: 2 }) : record(n),
    ),
    notes: {},
  }
}

test('poison: alone from the second crash on, then quarantined, is kept', () => {
  assert.deepEqual(brokenIn('poison', poisoned()), [])
})

test('poison: a suspect among others; one that is tried on and on; a neighbour that is blamed', () => {
  const seen = poisoned()
  const neighbour = seen.jobs[0]!.n
  const among = { ...seen, events: [started('c', seen.jobs[1]!.n, 4_100), ...seen.events] }
  assert.deepEqual(brokenIn('poison', among), ['a job whose worker died twice runs alone from then on'])
  const tried = { ...seen, records: seen.records.map((one) => ({ ...one, crashesAlone: one.crashesAlone && 3 })) }
  assert.deepEqual(brokenIn('poison', tried), ['two crashes alone quarantine it'])
  const blamed = seen.records.map((one) =>
    one.n === neighbour ? record(neighbour, { state: 'dead', reason: 'poison' }) : one,
  )
  assert.deepEqual(brokenIn('poison', { ...seen, records: blamed }), ['its neighbours are not blamed, and complete'])
})

test('poison: a drill without a job that kills has shown nothing of it', () => {
  const seen = poisoned()
  const jobs = seen.jobs.filter(({ act }) => act !== 'poison')
  assert.deepEqual(brokenIn('poison', { ...seen, jobs }), [
    'a job whose worker died twice runs alone from then on',
    'two crashes alone quarantine it',
  ])
})

// The drill `hopeless`.

function hopeless(): Seen {
  const jobs = jobsOf('hopeless', 0, PACES.quick)
  const attempts = [1, 2, 3]
  const twice = [...attempts, ...attempts]
  return {
    jobs,
    events: jobs.flatMap(({ n }) => twice.map((attempt, i) => started('a', n, n + i, attempt))),
    records: [],
    notes: {
      redriven: jobs.map(({ n }) => ({
        n,
        id: id(n),
        errors: attempts.map((attempt) => ({ name: 'Error', message: failureText(attempt) })),
        attempts: 3,
        answer: 'ok',
        idOfKey: id(n),
        stateAfter: 'dead' as const,
      })),
    },
  }
}

test('hopeless: dead after exactly its attempts with all errors, and brought back by key, is kept', () => {
  assert.deepEqual(brokenIn('hopeless', hopeless()), [])
})

test('hopeless: a start too many; an error that is gone; a key that has become another job', () => {
  const seen = hopeless()
  const [first, second] = seen.notes.redriven!
  const more = { ...seen, events: [...seen.events, started('a', seen.jobs[0]!.n, 99_999, 4)] }
  assert.match(brokenIn('hopeless', more).join(), /exactly its attempts/)
  const forgetful = { ...seen, notes: { redriven: [{ ...first!, errors: first!.errors.slice(1) }, second!] } }
  assert.deepEqual(brokenIn('hopeless', forgetful), ['each of its errors is kept'])
  const doubled = { ...seen, notes: { redriven: [{ ...first!, idOfKey: 'another job' }, second!] } }
  assert.match(brokenIn('hopeless', doubled).join(), /same id and key/)
  assert.equal(brokenIn('hopeless', { ...seen, notes: {} }).length, 3, 'what was not looked at is not kept')
})
