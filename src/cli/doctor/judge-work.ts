/** Judges the work: time-outs, leases, crashes, queues, workers. Facts in, findings out. Called by checks.ts. */
import { formatDuration } from '../../core/duration.js'
import type { Count, Crashes, KindRuns, Overdue, QueueView, WaitingKind, WorkerView } from '../../storage/storage.js'
import { printable } from '../printable.js'
import { type Fault, type Finding, findingOf, many } from './finding.js'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Durations that people write. */
const NICE_MS = [1, 2, 5, 10, 15, 30]
  .map((seconds) => seconds * 1_000)
  .concat([1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS))
  .concat([1, 2, 3, 6, 12, 24, 48].map((hours) => hours * HOUR_MS))

/** The first of them that is not less. */
export function nice(ms: number): number {
  return NICE_MS.find((one) => one >= ms) ?? Math.ceil(ms / (24 * HOUR_MS)) * 24 * HOUR_MS
}

/** With fewer a percentile says nothing. */
const RUNS_MIN = 20
const NEAR_SHARE = 0.7
const TIMED_OUT_SHARE = 0.01
/** A time-out that is far above holds a slot for long when an attempt hangs. */
const FAR_FACTOR = 50
const FAR_MS = 30 * MINUTE_MS
const KINDS_SHOWN = 10

/** Room for three times the slow ones, and for half as much again as the slowest. */
export function fittingTimeoutMs({ p99Ms, maxMs }: Pick<KindRuns, 'p99Ms' | 'maxMs'>): number {
  return nice(Math.max(1_000, 3 * p99Ms, 1.5 * maxMs))
}

export function judgeTimeouts(runs: readonly KindRuns[]): Finding {
  const measured = { kinds: runs.map((run) => ({ ...run, fittingTimeoutMs: fittingTimeoutMs(run) })) }
  if (runs.length === 0)
    return { verdict: 'ok', text: 'nothing to measure: there are no records of completed jobs', measured }
  const faults = runs.flatMap(timeoutFaults)
  const closest = [...runs].sort((a, b) => b.p95Ms / b.timeoutMs - a.p95Ms / a.timeoutMs)
  const finding = findingOf(faults, `the time-outs of ${many(runs.length, 'kind')} fit what was measured`, measured)
  return { ...finding, items: closest.slice(0, KINDS_SHOWN).map(runText) }
}

function timeoutFaults(run: KindRuns): Fault[] {
  const { kind, completed, p95Ms, p99Ms, timeoutMs, timedOut } = run
  const fix = `defineJob('${kind}', { timeout: '${shortest(fittingTimeoutMs(run))}' })`
  if (timedOut > 0 && timedOut >= (completed + timedOut) * TIMED_OUT_SHARE) {
    const longer = `make its attempts shorter, or its time-out of ${formatDuration(timeoutMs)} longer`
    return [{ verdict: 'warn', text: `${many(timedOut, 'attempt')} of ${kind} timed out`, fix: longer }]
  }
  if (completed < RUNS_MIN) return []
  if (p95Ms >= timeoutMs * NEAR_SHARE)
    return [
      {
        verdict: 'warn',
        text: `${kind} is near its time-out: p95 ${formatDuration(p95Ms)} of ${formatDuration(timeoutMs)}`,
        fix,
      },
    ]
  if (timeoutMs >= FAR_MS && timeoutMs >= FAR_FACTOR * Math.max(1, p99Ms))
    return [
      {
        verdict: 'warn',
        text: `an attempt of ${kind} that hangs holds its slot for ${formatDuration(timeoutMs)}, and p99 is ${formatDuration(p99Ms)}`,
        fix,
      },
    ]
  return []
}

function runText(run: KindRuns): string {
  const { kind, queue, completed, p95Ms, p99Ms, timeoutMs, timedOut } = run
  const cut = timedOut === 0 ? '' : `, ${timedOut} timed out`
  if (completed === 0) return `${kind} (${queue}): none completed of time-out ${formatDuration(timeoutMs)}${cut}`
  const fits = completed < RUNS_MIN ? 'too few to advise' : `${formatDuration(fittingTimeoutMs(run))} would fit`
  return `${kind} (${queue}): p95 ${formatDuration(p95Ms)}, p99 ${formatDuration(p99Ms)}, time-out ${formatDuration(timeoutMs)}; ${fits}${cut}`
}

/** As options take it: `2m`, `12h`. */
function shortest(ms: number): string {
  return formatDuration(ms).replaceAll(' ', '')
}

/** Until then a dead worker's jobs wait. */
const LEASE_LONG_MS = 2 * MINUTE_MS
const LEASE_DEFAULT_MS = 10_000
const LAG_SHARE = 0.5

/** The lease has to outlast whatever keeps a worker's main loop from answering, by far. */
export function judgeLeases(workers: readonly WorkerView[]): Finding {
  const lagMs = Math.max(0, ...workers.map(({ mainLagMs }) => mainLagMs))
  const leases = workers.map(({ id, name, leaseMs, beatMs, mainLagMs }) => ({ id, name, leaseMs, beatMs, mainLagMs }))
  const fittingLeaseMs = nice(Math.max(LEASE_DEFAULT_MS, 4 * lagMs))
  const faults = workers.flatMap(({ name, leaseMs, mainLagMs }): Fault[] => {
    if (mainLagMs >= leaseMs * LAG_SHARE)
      return [
        {
          verdict: 'warn',
          text: `the main loop of ${printable(name)} has not answered for ${formatDuration(mainLagMs)} of a lease of ${formatDuration(leaseMs)}: others will take its jobs over`,
          fix: `keep handlers from blocking the loop, or lease: '${shortest(fittingLeaseMs)}'`,
        },
      ]
    if (leaseMs <= LEASE_LONG_MS) return []
    return [
      {
        verdict: 'warn',
        text: `when ${printable(name)} dies its jobs wait for ${formatDuration(leaseMs)}`,
        fix: `lease: '${shortest(fittingLeaseMs)}' would do: beats keep it, however long attempts run`,
      },
    ]
  })
  const spread = [...new Set(workers.map(({ leaseMs }) => leaseMs))].sort((a, b) => a - b)
  const well =
    workers.length === 0
      ? 'no worker is alive'
      : `leases of ${spread.map(formatDuration).join(', ')}; no main loop has lagged by more than ${formatDuration(lagMs)}`
  return findingOf(faults, well, { workers: leases, fittingLeaseMs })
}

/** One deploy that was killed makes some. */
const LEASES_ENDED_MIN = 10

export function judgeCrashes(crashes: Crashes): Finding {
  const { leasesEnded, suspects, poison, lost } = crashes
  const fault = (text: string, fix: string): Fault => ({ verdict: 'warn', text, fix })
  const faults: Fault[] = []
  if (leasesEnded.count >= LEASES_ENDED_MIN)
    faults.push(
      fault(
        `${least(leasesEnded, 'lease')} ended without their workers in the last hour`,
        'look at the log for "worker.written off" and "worker.leases lost": workers die, freeze, or lose the store',
      ),
    )
  if (suspects.count > 0)
    faults.push(
      fault(
        `${least(suspects, 'suspect')} waiting to run alone, as workers died while they held them`,
        'look at "leasehold jobs list --state pending" for what kills workers',
      ),
    )
  if (poison.count > 0)
    faults.push(
      fault(`${least(poison, 'job')} died of killing workers in the last day`, '"leasehold dead list --reason poison"'),
    )
  if (lost.count > 0)
    faults.push(
      fault(
        `${least(lost, 'at-most-once job')} may have run and was lost in the last day`,
        '"leasehold dead list --reason lost"',
      ),
    )
  return findingOf(faults, 'no job has killed its worker in the last day', { ...crashes })
}

function least({ count, exact }: Count, one: string): string {
  return `${exact ? '' : 'at least '}${many(count, one)}`
}

const PAUSED_MS_MAX = 10 * MINUTE_MS

export function judgeQueues(queues: readonly QueueView[], waiting: readonly WaitingKind[]): Finding {
  const oldestMs = (name: string): number =>
    Math.max(0, ...waiting.filter(({ queue }) => queue === name).map((one) => one.oldestMs))
  const faults = queues.flatMap(({ queue, paused, draining }): Fault[] => {
    const fix = `"leasehold queues resume ${queue}"`
    if (draining) return [{ verdict: 'warn', text: `${queue} refuses new jobs: it was drained and not resumed`, fix }]
    const forMs = oldestMs(queue)
    if (!paused || forMs < PAUSED_MS_MAX) return []
    return [
      { verdict: 'warn', text: `${queue} is paused, and a job has been due in it for ${formatDuration(forMs)}`, fix },
    ]
  })
  const paused = queues.filter((queue) => queue.paused).length
  const well = `${many(queues.length, 'queue')}, ${paused === 0 ? 'none' : paused} of them paused${paused === 0 ? '' : ' without work that waits for long'}`
  return findingOf(faults, well, { queues: queues.filter((queue) => queue.paused || queue.draining) })
}

/** A worker that starts takes a moment. */
const UNATTENDED_MS_MAX = 30_000
const KINDS_UNABLE_SHOWN = 10

/** Jobs that are due, and that no worker alive can run. */
export function judgeAbility(
  waiting: readonly WaitingKind[],
  { queues, workers }: { queues: readonly QueueView[]; workers: readonly WorkerView[] },
): Finding {
  const paused = new Set(queues.filter((queue) => queue.paused).map(({ queue }) => queue))
  const stuck = waiting.filter(
    (one) => !paused.has(one.queue) && one.oldestMs >= UNATTENDED_MS_MAX && whyNot(one, workers) !== undefined,
  )
  const measured = { unattended: stuck }
  const lying = stuck.reduce((sum, { count }) => sum + count.count, 0)
  if (stuck.length === 0)
    return { verdict: 'ok', text: 'no job has waited for long without a worker that can run it', measured }
  return {
    verdict: 'warn',
    text: `${many(lying, 'job')} at the heads of queues will not be run:`,
    measured,
    items: stuck
      .slice(0, KINDS_UNABLE_SHOWN)
      .map((one) => `${one.kind} in ${one.queue}, due for ${formatDuration(one.oldestMs)}: ${whyNot(one, workers)}`),
    fix: 'start a worker with their handlers on their queues; a mistyped kind or queue is ended by "leasehold jobs cancel"',
  }
}

function whyNot({ queue, kind }: WaitingKind, workers: readonly WorkerView[]): string | undefined {
  if (workers.length === 0) return 'no worker is alive'
  const there = workers.filter(({ queues }) => queues.includes(queue))
  if (there.length === 0) return 'no worker works on the queue'
  // One of an older version does not say what it can run.
  const able = there.some(({ kinds }) => kinds === undefined || kinds.includes(kind))
  return able ? undefined : 'no worker of the queue has a handler of the kind'
}

export function judgePromotion({ count, oldestMs }: Overdue): Finding {
  const faults: Fault[] = []
  if (count.count > 0)
    faults.push({
      verdict: 'warn',
      text: `${least(count, 'delayed job')} should have become ready, up to ${formatDuration(oldestMs)} ago`,
      fix: 'some worker with upkeep has to run; any one does, whatever its queues are',
    })
  return findingOf(faults, 'delayed jobs become ready in time', { overdue: count, oldestMs })
}

const LAG_MS_MAX = 1_000
const BEATS_MISSED = 2

export function judgeWorkers(workers: readonly WorkerView[]): Finding {
  const faults = workers.flatMap(({ name, mainLagMs, lastBeatAgoMs, beatMs }): Fault[] => {
    const who = printable(name)
    if (lastBeatAgoMs > BEATS_MISSED * beatMs)
      return [
        {
          verdict: 'warn',
          text: `${who} has not been heard of for ${formatDuration(lastBeatAgoMs)}`,
          fix: 'see whether its process lives and reaches the store; its jobs are taken over when its lease is over',
        },
      ]
    if (mainLagMs <= LAG_MS_MAX) return []
    return [
      {
        verdict: 'warn',
        text: `the main loop of ${who} lags by ${formatDuration(mainLagMs)}`,
        fix: 'its handlers compute for long in one go: lower concurrency, or move the work to threads',
      },
    ]
  })
  const slots = workers.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const well =
    workers.length === 0 ? 'none is alive' : `${many(workers.length, 'worker')} with ${many(slots, 'slot')}, all well`
  const measured = workers.map(({ id, name, lastBeatAgoMs, mainLagMs, jobs, concurrency }) => ({
    id,
    name,
    lastBeatAgoMs,
    mainLagMs,
    jobs,
    concurrency,
  }))
  return findingOf(faults, well, { workers: measured })
}
