/** The plans of chaos: the same for the same seed, whoever asks, and with something of everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CUT_OPERATIONS, CUTS, type Kill, type Moment } from '../../src/testing/chaos/acts.js'
import { FORMS } from '../../src/testing/chaos/forms.js'
import {
  factsOfSort,
  type PlanSize,
  plannedJob,
  plannedTransaction,
  SORT_NAMES,
  SORTS,
} from '../../src/testing/chaos/plan.js'

const SIZE: PlanSize = { seed: 7, jobs: 3_000, backlog: 500 }
const numbers = Array.from({ length: SIZE.jobs }, (_, n) => n)

test('the shares of the sorts make a whole', () => {
  const shares = SORT_NAMES.map((sort) => SORTS[sort].share as number)
  assert.equal(
    shares.reduce((sum, share) => sum + share),
    100,
  )
})

test('a job of the plan is the same in whatever order it is asked for, and another seed gives other jobs', () => {
  const forth = numbers.map((n) => plannedJob(SIZE, n))
  const back = numbers.toReversed().map((n) => plannedJob(SIZE, n))
  assert.deepEqual(forth, back.toReversed())
  assert.notDeepEqual(
    forth,
    numbers.map((n) => plannedJob({ ...SIZE, seed: 8 }, n)),
  )
})

test('every sort occurs about as often as its share says; what comes after is backlog, and beyond it nothing', () => {
  for (const sort of SORT_NAMES) {
    const count = numbers.filter((n) => plannedJob(SIZE, n)!.sort === sort).length
    const expected = (SIZE.jobs * SORTS[sort].share) / 100
    assert.ok(count > expected * 0.7 && count < expected * 1.3, `${count} of ${sort}, about ${expected} expected`)
  }
  assert.equal(plannedJob(SIZE, SIZE.jobs)!.sort, 'backlog')
  assert.equal(plannedJob(SIZE, SIZE.jobs + SIZE.backlog), undefined)
  assert.equal(plannedJob(SIZE, -1), undefined)
  assert.equal(plannedJob(SIZE, 1.5), undefined)
})

test('crashes that the driver allows never use up the attempts of a job that has to succeed', () => {
  // Two crashes make a suspect, one more may happen while it runs alone; the next one would be spared.
  const crashesMax = 3
  for (const n of numbers) {
    const { sort, failures } = plannedJob(SIZE, n)!
    if (factsOfSort(sort).ends !== 'completed') continue
    assert.ok(failures + crashesMax < factsOfSort(sort).attempts, sort)
  }
})

test('transactions are held for seconds, of several sizes, and some are rolled back', () => {
  const planned = numbers.map((n) => plannedTransaction(SIZE.seed, n))
  assert.ok(planned.every(({ openMs, jobs }) => openMs >= 1_000 && openMs <= 5_000 && jobs >= 1))
  assert.deepEqual(new Set(planned.map(({ end }) => end)), new Set(['commit', 'roll back']))
  assert.ok(new Set(planned.map(({ jobs }) => jobs)).size > 5)
})

function actsOf(seed: number, count: number): Kill[] {
  const acts: Kill[] = []
  for (const act of FORMS.kill.acts(seed, { workers: 4, producers: 3 })) {
    acts.push(act)
    if (acts.length === count) break
  }
  return acts
}

test('acts come in order, again the same, and meet every moment, every call at every point, and all workers at once', () => {
  const acts = actsOf(3, 600)
  assert.deepEqual(acts, actsOf(3, 600))
  for (let i = 1; i < acts.length; i++) assert.ok(acts[i]!.atMs >= acts[i - 1]!.atMs)
  const kills = acts.flatMap((act) => (act.act === 'kill worker' ? [act] : []))
  for (const { seats } of kills) {
    assert.equal(new Set(seats).size, seats.length)
    assert.ok(seats.every((seat) => seat >= 0 && seat < 4))
  }
  assert.ok(kills.some(({ seats }) => seats.length === 4))
  assert.ok(acts.some((act) => act.act === 'kill producer'))
  assert.ok(acts.some(({ flood }) => flood) && acts.some(({ flood }) => !flood))
  const moments = new Set(kills.map(({ moment }) => wordOf(moment)))
  const calls = CUT_OPERATIONS.flatMap((operation) => CUTS.map((cut) => `${operation} ${cut}`))
  assert.deepEqual([...moments].sort(), ['any', 'start', 'stop', ...calls].sort())
})

function wordOf(moment: Moment): string {
  return moment.at === 'call' ? `${moment.operation} ${moment.cut}` : moment.at
}
