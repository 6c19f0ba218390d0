/** Costs of a job, and what they are read from. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { type Cost, costPerJob, difference, ownCost } from '../../bench/cost.js'
import { parseStat } from '../../bench/proc.js'
import { interleaved } from '../../bench/rounds.js'
import { growthOf } from '../../bench/scenarios/steady.js'

const cost: Cost = {
  roundTrips: 10,
  rowsInserted: 200,
  rowsUpdated: 20,
  rowsDeleted: 100,
  toastRowWrites: 4,
  walBytes: 50_000,
  deadTuples: 100,
  serverCpuUs: 1_000,
  clientCpuUs: 500,
}

test('rounds are added up and divided by all of their jobs', () => {
  const each = costPerJob([cost, { ...cost, rowsInserted: 400, walBytes: 150_000 }], 200, 'worker')
  assert.equal(each.roundTrips, 0.1)
  assert.equal(each.rowWrites, (200 + 400 + 2 * 120) / 200)
  assert.equal(each.walBytes, 1_000)
  assert.equal(each.workerCpuUs, 5)
  assert.equal(each.serverCpuUs, 10)
})

test('what could not be seen in one round is not known, and everything else is', () => {
  const each = costPerJob([cost, { ...cost, serverCpuUs: null }], 200, 'producer')
  assert.equal(each.serverCpuUs, null)
  assert.equal(each.producerCpuUs, 5)
  assert.equal(difference(5, null), null)
  assert.equal(difference(5, 3), 2)
})

test('a process pays for the work that it does', async () => {
  const { result, client } = await ownCost(async () => {
    const before = process.cpuUsage()
    while (process.cpuUsage(before).user < 20_000);
    return 'done'
  })
  assert.equal(result, 'done')
  assert.ok(client.cpuUs >= 20_000)
  assert.equal(client.roundTrips, 0)
})

test('a line of /proc is read whatever the command is called', () => {
  const line =
    '4242 (post) (gres) S 4000 4242 4242 0 -1 4194560 900 800 0 0 7 11 13 17 20 0 1 0 12345 227000 9000 18446744073709551615'
  assert.deepEqual(parseStat(line), { command: 'post) (gres', parent: 4_000, ticks: 7 + 11 + 13 + 17 })
})

test('two things are measured in turns', async () => {
  const order: string[] = []
  const measure = (name: string) => async () => order.push(name)
  const { firsts, seconds } = await interleaved(2, measure('bound'), measure('product'))
  assert.deepEqual(order, ['bound', 'product', 'bound', 'product'])
  assert.deepEqual(
    [firsts, seconds],
    [
      [1, 3],
      [2, 4],
    ],
  )
})

test('growth is from the end of the first part to the end, WAL that of the first part and the last', () => {
  const sample = (ran: number, walBytes: number, bytes: number, deadTuples: number) => ({
    ran,
    walBytes,
    recordBytes: ran * 200,
    tables: { ready: { bytes: bytes - 10, deadTuples }, lease: { bytes: 10, deadTuples: 0 } },
  })
  const figures = growthOf([
    sample(0, 0, 100, 0),
    sample(100, 50_000, 1_000, 10),
    sample(200, 100_000, 5_000, 90),
    sample(300, 200_000, 2_000, 30),
  ])
  assert.deepEqual(figures.growth, { hotBytes: 1_000, hotRatio: 2, deadTuples: 20, walRatio: 2 })
  assert.deepEqual(figures.begin, { hotBytes: 1_000, deadTuples: 10, walPerJobBytes: 500, recordsPerJobBytes: 200 })
  assert.equal(figures.hottestBytes, 5_000)
  const { ready } = figures.tables as Record<string, unknown>
  assert.deepEqual(ready, { beginBytes: 990, endBytes: 1_990, beginDeadTuples: 10, endDeadTuples: 30 })
})
