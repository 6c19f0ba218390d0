/** How figures are shown. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { jsonLine, labelOf, shown, shownConditions } from '../../bench/report.js'

const figures = {
  scenario: 'drain',
  jobs: 100_000,
  jobsPerSecond: 41_234,
  p50Ms: 1.5,
  p95Ms: 2,
  p99Ms: undefined,
  ratioToBound: 0.5,
  boundJobsPerSecond: 82_000,
  rssMb: [60, 61.25],
  perJob: { walBytes: 528, serverCpuUs: null },
  notThere: undefined,
}

test('for people: the first line has what most look for, the others labels in a column and units', () => {
  assert.deepEqual(shown(figures).split('\n'), [
    'drain   100,000 jobs   41,234 jobs/s   p50 1.5 ms   p95 2 ms',
    '  ratio to bound  0.5',
    '  bound           82,000 jobs/s',
    '  rss             60  61.25 MB',
    '  per job',
    '    wal           528 B',
    '    server cpu    not known here',
  ])
})

test('for programs: one line, with the conditions', () => {
  const line = jsonLine(figures, { postgres: '18.4' })
  assert.ok(!line.includes('\n'))
  const read = JSON.parse(line)
  assert.equal(read.jobsPerSecond, 41_234)
  assert.equal(read.perJob.serverCpuUs, null)
  assert.deepEqual(read.conditions, { postgres: '18.4' })
})

test('the ending of a key is its unit', () => {
  assert.deepEqual(labelOf('producerLateP95Ms'), { name: 'producer late p95', unit: 'ms' })
  assert.deepEqual(labelOf('jobsOfAClaim'), { name: 'jobs of a claim', unit: '' })
  assert.deepEqual(labelOf('serverCpuMsPerSecond'), { name: 'server cpu', unit: 'ms/s' })
  assert.deepEqual(labelOf('statementsPerSecond'), { name: 'statements', unit: '/s' })
})

test('conditions are a column of their own', () => {
  const text = shownConditions({ fsync: 'on', synchronousCommit: 'off', durable: false })
  assert.equal(text, 'conditions\n  fsync               on\n  synchronous commit  off\n  durable             false')
})
