/** How fast the worker itself is: no-op jobs, and a store that costs as little as a store can. Prints, asserts no time. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { realEnv } from '../../src/core/env.js'
import { SPEC_DEFAULTS } from '../../src/core/job.js'
import { EventBus } from '../../src/observe/events.js'
import { LocalHints } from '../../src/storage/connection.js'
import type { Claim, ClaimedJob, ClaimRequest, SettleAnswer, Settlement, Storage } from '../../src/storage/storage.js'
import { Worker } from '../../src/worker/index.js'
import { handler, realKit } from './kit.js'

const JOBS = 100_000

function report(name: string, jobs: number, ms: number): void {
  process.stdout.write(
    `# ${name}: ${Math.round(jobs / (ms / 1_000)).toLocaleString('en')} jobs/s, ${((ms * 1_000) / jobs).toFixed(2)} µs a job\n`,
  )
}

test(`drains ${JOBS} no-op jobs from the memory store`, async () => {
  const kit = realKit()
  await kit.enqueue(JOBS, { spec: { keep: 'none' } })
  let ran = 0
  const worker = new Worker({ ...kit.connection, events: new EventBus() }, [handler(() => void ran++)], {
    signals: false,
  })
  const startedAt = realEnv.monotonic()
  const stats = await worker.runUntilEmpty()
  report('memory store', JOBS, realEnv.monotonic() - startedAt)
  assert.equal(ran, JOBS)
  assert.equal(stats.completed, JOBS)
})

/** Hands out jobs made beforehand, and believes every settlement: what is left is the worker's own cost. */
class EmptyCostStore {
  readonly name = 'none'
  settled = 0
  private fence = 0
  private left: number
  private readonly jobs: ClaimedJob[]

  constructor(jobs: number) {
    this.left = jobs
    this.jobs = Array.from({ length: 100 }, (_, n) => ({
      id: realEnv.id(),
      kind: 'kind',
      queue: 'queue',
      priority: 4,
      payload: { n },
      spec: SPEC_DEFAULTS,
      history: null,
      enqueuedAt: 0,
      waitedMs: 1,
      expiresInMs: null,
    }))
  }

  async claim({ limit, finished = [] }: ClaimRequest): Promise<Claim> {
    const settled = await this.settle(finished)
    const leases = []
    for (let more = Math.min(limit, this.left); more > 0; more -= 100) {
      const jobs = more >= 100 ? this.jobs : this.jobs.slice(0, more)
      this.left -= jobs.length
      leases.push({ fence: ++this.fence, alone: false, jobs })
    }
    return {
      status: 'ok',
      leases,
      settled,
      more: leases.length > 0,
      nextDueMs: null,
      paused: [],
      limited: [],
      nextTokenMs: null,
      nowMs: 0,
    }
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    // What waited too long for a slot comes again.
    const back = settlements.filter(({ to }) => to === 'ready').length
    this.left += back
    this.settled += settlements.length - back
    return settlements.map(() => 'ok')
  }

  async beat(): Promise<unknown> {
    return { status: 'ok', lost: [], cancel: [], paused: [] }
  }

  async takeOver(): Promise<unknown> {
    return { leases: [], nowMs: 0 }
  }

  async unregister(): Promise<void> {}
}

async function ownCost(name: string, run: () => unknown): Promise<void> {
  const jobs = 400_000
  const store = new EmptyCostStore(jobs)
  const connection = {
    env: realEnv,
    storage: store as unknown as Storage,
    events: new EventBus(),
    hints: new LocalHints(),
  }
  const worker = new Worker(connection, [handler(run)], { signals: false, upkeep: false })
  const startedAt = realEnv.monotonic()
  const cpu = process.cpuUsage()
  const stats = await worker.runUntilEmpty()
  const { user, system } = process.cpuUsage(cpu)
  report(
    `the worker alone, ${name} (${((user + system) / jobs).toFixed(2)} µs of CPU a job)`,
    jobs,
    realEnv.monotonic() - startedAt,
  )
  assert.equal(stats.completed, jobs)
  assert.equal(store.settled, jobs)
}

test('the worker alone: a no-op that returns', () => ownCost('a no-op that returns', () => {}))
test('the worker alone: an async no-op', () => ownCost('an async no-op', async () => {}))
