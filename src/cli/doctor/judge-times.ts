/**
 * Judges time-outs and leases by what was measured, and says which would fit and why. Facts in, findings out. Called by
 * checks.ts.
 */
import { formatDuration } from '../../core/duration.js'
import type { KindRuns, WorkerView } from '../../storage/storage.js'
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

/** As options take it: `2m`, `12h`. */
function shortest(ms: number): string {
  return formatDuration(ms).replaceAll(' ', '')
}

/** What would fit, and by which measure. */
interface Fitting {
  ms: number
  why: string
}

/** The longest of what is asked for, as people write durations. */
function longest(needs: readonly Fitting[]): Fitting {
  const { ms, why } = needs.reduce((most, one) => (one.ms > most.ms ? one : most))
  return { ms: nice(ms), why }
}

// Time-outs.

/** With fewer a percentile says nothing. */
const RUNS_MIN = 20
const NEAR_SHARE = 0.7
/** Of the time-out, for the slowest hundredth: what is slower than measured is cut. */
const CUT_SHARE = 0.9
const TIMED_OUT_SHARE = 0.01
/** A time-out that is far above holds a slot for long when an attempt hangs. */
const FAR_FACTOR = 50
const FAR_MS = 10 * MINUTE_MS
const KINDS_SHOWN = 10

const TIMEOUT_MS_MIN = 1_000

/** Room for three times the slow ones, and for half as much again as the slowest. */
export function fittingTimeout({ p99Ms, maxMs }: Pick<KindRuns, 'p99Ms' | 'maxMs'>): Fitting {
  return longest([
    { ms: TIMEOUT_MS_MIN, why: 'the least' },
    { ms: 3 * p99Ms, why: '3 × p99' },
    { ms: 1.5 * maxMs, why: `1.5 × the longest, ${formatDuration(maxMs)}` },
  ])
}

export function judgeTimeouts(runs: readonly KindRuns[]): Finding {
  const measured = { kinds: runs.map((run) => ({ ...run, fittingTimeoutMs: fittingTimeout(run).ms })) }
  if (runs.length === 0)
    return { verdict: 'ok', text: 'nothing to measure: there are no records of completed jobs', measured }
  const faults = runs.flatMap(timeoutFaults)
  const closest = [...runs].sort((a, b) => b.p95Ms / b.timeoutMs - a.p95Ms / a.timeoutMs)
  const finding = findingOf(faults, `the time-outs of ${many(runs.length, 'kind')} fit what was measured`, measured)
  return { ...finding, items: closest.slice(0, KINDS_SHOWN).map(runText) }
}

function timeoutFaults(run: KindRuns): Fault[] {
  const { kind, completed, p95Ms, p99Ms, timeoutMs, timedOut } = run
  const warn = (text: string, ms: number, more = ''): Fault[] => [
    { verdict: 'warn', text, fix: `defineJob('${kind}', { timeout: '${shortest(ms)}' })${more}` },
  ]
  const limit = formatDuration(timeoutMs)
  if (timedOut > 0 && timedOut >= (completed + timedOut) * TIMED_OUT_SHARE) {
    const share = Math.round((100 * timedOut) / (completed + timedOut))
    // How long they would have run was not measured: they were cut.
    return warn(
      `${many(timedOut, 'attempt')} of ${kind} timed out after ${limit}, ${share} % of what was seen`,
      nice(2 * timeoutMs),
      ', or make its attempts shorter',
    )
  }
  if (completed < RUNS_MIN) return []
  const fitting = fittingTimeout(run).ms
  if (p95Ms >= timeoutMs * NEAR_SHARE)
    return warn(`${kind} is near its time-out: p95 ${formatDuration(p95Ms)} of ${limit}`, fitting)
  if (p99Ms >= timeoutMs * CUT_SHARE)
    return warn(
      `the slowest attempts of ${kind} are near its time-out: p99 ${formatDuration(p99Ms)} of ${limit}`,
      fitting,
    )
  if (timeoutMs >= FAR_MS && timeoutMs >= FAR_FACTOR * Math.max(1, p99Ms))
    return warn(
      `an attempt of ${kind} that hangs holds its slot for ${limit}, and p99 is ${formatDuration(p99Ms)}`,
      fitting,
    )
  return []
}

function runText(run: KindRuns): string {
  const { kind, queue, completed, p95Ms, p99Ms, timeoutMs, timedOut } = run
  const cut = timedOut === 0 ? '' : `, ${timedOut} timed out`
  if (completed === 0) return `${kind} (${queue}): none completed of time-out ${formatDuration(timeoutMs)}${cut}`
  const { ms, why } = fittingTimeout(run)
  const fits = completed < RUNS_MIN ? 'too few to advise' : `${formatDuration(ms)} would fit (${why})`
  return `${kind} (${queue}): p95 ${formatDuration(p95Ms)}, p99 ${formatDuration(p99Ms)}, time-out ${formatDuration(timeoutMs)}; ${fits}${cut}`
}

// Leases.

const LEASE_DEFAULT_MS = 10_000
/** Until then a dead worker's jobs wait. */
const LEASE_LONG_MS = 2 * MINUTE_MS
const LAG_SHARE = 0.5
const LAG_FACTOR = 4
/** Of a run: a worker that is taken over by mistake runs its jobs again, so a long run is worth a longer lease. */
const RUN_SHARE = 1 / 60
/** A lease of a third of what would fit is told. */
const SHORT_FACTOR = 3
/** Of a lease: two beats may be lost. */
const BEAT_SHARE = 0.3
const BEATS_MIN = 3

/**
 * A lease does not have to outlast an attempt, as beats keep it. It has to outlast whatever keeps the main loop from
 * answering, by far; and where a mistake costs long runs, a hiccup of the network, too.
 */
export function fittingLease(lagMs: number, runs: readonly KindRuns[]): Fitting {
  const slowest = slowestOf(runs)
  const p99Ms = slowest?.p99Ms ?? 0
  const known =
    slowest === undefined ? '' : `, and attempts take ${formatDuration(p99Ms)} at most (p99, ${slowest.kind})`
  return longest([
    { ms: LEASE_DEFAULT_MS, why: `the default: main loops answer in time${known}` },
    { ms: LAG_FACTOR * lagMs, why: `${LAG_FACTOR} × the ${formatDuration(lagMs)} that its main loop did not answer` },
    {
      ms: Math.min(LEASE_LONG_MS, RUN_SHARE * p99Ms),
      why: `attempts of ${slowest?.kind} run for ${formatDuration(p99Ms)} (p99), and a mistake runs them again`,
    },
  ])
}

function slowestOf(runs: readonly KindRuns[]): KindRuns | undefined {
  const known = runs.filter(({ completed }) => completed >= RUNS_MIN)
  return known.toSorted((a, b) => b.p99Ms - a.p99Ms)[0]
}

interface LeaseAdvice {
  worker: WorkerView
  fitting: Fitting
  /** Of what the worker runs. */
  slowest: KindRuns | undefined
}

export function judgeLeases(workers: readonly WorkerView[], runs: readonly KindRuns[]): Finding {
  const advice = workers.map((worker): LeaseAdvice => {
    const own = runs.filter((run) => canRun(worker, run))
    return { worker, fitting: fittingLease(worker.mainLagMs, own), slowest: slowestOf(own) }
  })
  const lagMs = Math.max(0, ...workers.map(({ mainLagMs }) => mainLagMs))
  const spread = [...new Set(workers.map(({ leaseMs }) => leaseMs))].sort((a, b) => a - b)
  const well =
    workers.length === 0
      ? 'no worker is alive'
      : `leases of ${spread.map(formatDuration).join(', ')}; no main loop has lagged by more than ${formatDuration(lagMs)}`
  const measured = {
    workers: advice.map(({ worker: { id, name, leaseMs, beatMs, mainLagMs }, fitting: { ms } }) => {
      return { id, name, leaseMs, beatMs, mainLagMs, fittingLeaseMs: ms, fittingBeatMs: beatOf(ms) }
    }),
    kinds: runs.map((run) => ({ kind: run.kind, queue: run.queue, fittingLeaseMs: fittingLease(0, [run]).ms })),
    fittingLeaseMs: Math.max(LEASE_DEFAULT_MS, ...advice.map(({ fitting }) => fitting.ms)),
  }
  const finding = findingOf(advice.flatMap(leaseFaults), well, measured)
  return { ...finding, ...(workers.length === 0 ? {} : { items: leaseTexts(advice) }) }
}

/** An older worker does not say which kinds it runs. */
function canRun({ queues, kinds }: WorkerView, { queue, kind }: KindRuns): boolean {
  return queues.includes(queue) && (kinds === undefined || kinds.includes(kind))
}

function beatOf(leaseMs: number): number {
  return Math.round(leaseMs * BEAT_SHARE)
}

/** The worst of it. */
function leaseFaults({ worker, fitting, slowest }: LeaseAdvice): Fault[] {
  const { leaseMs, beatMs, mainLagMs } = worker
  const name = printable(worker.name)
  const [lease, fit] = [formatDuration(leaseMs), shortest(fitting.ms)]
  const both = `lease: '${fit}', beat: '${shortest(beatOf(fitting.ms))}'`
  const warn = (text: string, fix: string): Fault[] => [{ verdict: 'warn', text, fix }]
  if (mainLagMs >= leaseMs * LAG_SHARE)
    return warn(
      `the main loop of ${name} has not answered for ${formatDuration(mainLagMs)} of a lease of ${lease}: others will take its jobs over`,
      `keep handlers from blocking the loop, or ${both}`,
    )
  if (leaseMs > Math.max(LEASE_LONG_MS, fitting.ms))
    return warn(
      `when ${name} dies its jobs wait for ${lease}`,
      `${both} would do: beats keep it, however long attempts run`,
    )
  if (leaseMs * SHORT_FACTOR < fitting.ms)
    return warn(
      `${name} has a lease of ${lease}, and attempts of ${slowest?.kind} run for ${formatDuration(slowest?.p99Ms ?? 0)} (p99): to be out of touch for ${lease} runs them again`,
      both,
    )
  if (beatMs * BEATS_MIN > leaseMs)
    return warn(
      `${name} beats each ${formatDuration(beatMs)} of a lease of ${lease}: one lost beat, and a late one, and its jobs are taken over`,
      `beat: '${shortest(beatOf(leaseMs))}'`,
    )
  return []
}

/** Once for all workers that are alike. */
function leaseTexts(advice: readonly LeaseAdvice[]): string[] {
  const texts = new Map<string, number>()
  for (const { worker, fitting } of advice) {
    const fits = `lease ${formatDuration(fitting.ms)} and beat ${formatDuration(beatOf(fitting.ms))} would fit`
    const now = `lease ${formatDuration(worker.leaseMs)}, beat ${formatDuration(worker.beatMs)}`
    const text = `${now}; ${fits} (${fitting.why})`
    texts.set(text, (texts.get(text) ?? 0) + 1)
  }
  return [...texts].slice(0, KINDS_SHOWN).map(([text, count]) => `${many(count, 'worker')}: ${text}`)
}
