/** Judges the work: crashes, queues, workers. Facts in, findings out. Called by checks.ts. */
import { formatDuration } from '../../core/duration.js'
import type { Count, Crashes, Overdue, QueueView, WaitingKind, WorkerView } from '../../storage/storage.js'
import { printable } from '../printable.js'
import { type Fault, type Finding, findingOf, many } from './finding.js'

const MINUTE_MS = 60_000

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
