/** The proof for people, and the line for scripts. Called by the demo and a recount. */
import { formatDuration } from '../../core/duration.js'
import { grouped } from '../../core/show.js'
import type { Paint } from '../paint.js'
import { printable } from '../printable.js'
import type { DemoRecord } from './files.js'
import { groupedBy } from './grouping.js'
import type { Waits } from './percentiles.js'
import type { Finding, Proof } from './proof.js'

const FINDINGS_SHOWN = 10

/** The one line of `--json`. */
export function proofLine(proof: Proof): Record<string, unknown> {
  const { waits, kills } = proof
  const recoveries = kills.flatMap(({ recoveryMs }) => recoveryMs ?? [])
  return {
    enqueued: proof.enqueued,
    completed: proof.completed,
    dead: proof.dead,
    lost: proof.lost.length,
    doubled: proof.doubled.length,
    redelivered: proof.redelivered.length,
    kills: kills.length,
    recoveryMs: recoveries.length === 0 ? null : Math.max(...recoveries),
    p50Ms: waits.p50Ms,
    p95Ms: waits.p95Ms,
    p99Ms: waits.p99Ms,
    jobsPerSecond: proof.jobsPerSecond,
    seconds: proof.seconds,
    busiestSecond: proof.busiestSecond,
    deduplicated: proof.deduplicated,
    early: proof.early.length,
    strays: proof.strays.length,
    unexplained: proof.redelivered.filter(({ causes }) => causes.length === 0).length,
    holds: proof.holds,
  }
}

export function proofText(proof: Proof, record: DemoRecord, paint: Paint): string {
  const sections = [
    outcomeSection(proof, record, paint),
    endsSection(proof, record, paint),
    redeliverySection(proof, paint),
    deadSection(proof, paint),
    waitSection(proof, paint),
    findingsSection(proof, paint),
    verdict(proof, paint),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

function outcomeSection(proof: Proof, record: DemoRecord, paint: Paint): string {
  const bad = (count: number): string => paint(count === 0 ? 'green' : 'red', grouped(count).padStart(7))
  const good = (count: number): string => grouped(count).padStart(7)
  const seconds = `${proof.seconds}s`
  const pace = `${grouped(proof.jobsPerSecond)} jobs/s over all, ${grouped(proof.busiestSecond)} in the busiest second`
  return [
    `${paint('bold', `${grouped(record.jobs)} webhook deliveries in ${seconds}`)}  (${pace})`,
    `  enqueued  ${good(proof.enqueued)}   ${record.repeated} were sent twice, ${record.duplicates} known by their key`,
    completedLine(proof, good),
    `  dead      ${good(proof.dead)}   each to a URL that is dead`,
    `  lost      ${bad(proof.lost.length)}   neither of the two`,
    `  doubled   ${bad(proof.doubled.length)}   effects applied more than once under one idempotency key`,
    `  early     ${bad(proof.early.length)}   sent before they were due`,
    `  strays    ${bad(proof.strays.length)}   jobs or effects that nobody enqueued`,
  ].join('\n')
}

/** Those without an effect are lost: they are counted there and told apart here. */
function completedLine({ completed, withoutEffect }: Proof, good: (count: number) => string): string {
  const effects = `  completed ${good(completed - withoutEffect)}   each with its effect in the receiver's log`
  return withoutEffect === 0 ? effects : `${effects}; ${grouped(withoutEffect)} more without one`
}

function endsSection(proof: Proof, record: DemoRecord, paint: Paint): string {
  const kills = proof.kills.map(({ worker, held, recoveryMs }) => {
    const recovery =
      recoveryMs === null ? 'none had to start again' : `all had started again ${formatDuration(recoveryMs)} later`
    return `  worker ${worker} was killed (SIGKILL) while it held ${held} deliveries: ${recovery}`
  })
  const stops = record.stopped.map(({ number, tookMs, givenBack }) => {
    const back = givenBack === 0 ? 'with nothing left over' : `and gave ${givenBack} back`
    return `  worker ${number} was stopped (SIGTERM) and ended in order in ${formatDuration(tookMs)}, ${back}`
  })
  return [paint('bold', 'Workers'), ...kills, ...stops].join('\n')
}

function redeliverySection({ redelivered, deduplicated }: Proof, paint: Paint): string {
  const causes = redelivered.flatMap(({ causes: found }) => (found.length === 0 ? ['no reason is known'] : found))
  const lines = [...groupedBy(causes, (cause) => cause)]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([cause, found]) => `${counted(found.length)}   ${printable(cause)}`)
  return [
    paint('bold', 'Redelivered'),
    `  ${grouped(redelivered.length)} deliveries were sent more than once. ${grouped(deduplicated)} repeats came after the effect,`,
    '  and the receiver knew them by their key. Why they were sent again:',
    ...lines,
  ].join('\n')
}

const ENDPOINT_WORDS = {
  live: 'to a live URL',
  refused: 'refuses connections',
  broken: 'always answers 500',
  gone: 'answers 410 Gone',
} as const

function deadSection({ deadLetters }: Proof, paint: Paint): string {
  const lines = deadLetters.map(({ endpoint, attempts, reason, error, count }) => {
    const after = attempts === 1 ? 'the first attempt' : `${attempts} attempts`
    return [
      `${counted(count)}   ${ENDPOINT_WORDS[endpoint].padEnd(19)}  ${reason} after ${after}`,
      paint('dim', `            ${printable(error)}`),
    ].join('\n')
  })
  return [paint('bold', 'Dead letters'), ...lines].join('\n')
}

function counted(count: number): string {
  return grouped(count).padStart(9)
}

function waitSection({ waits, waitsByPriority }: Proof, paint: Paint): string {
  const cell = (ms: number): string => formatDuration(ms).padStart(9)
  const row = (name: string, { count, p50Ms, p95Ms, p99Ms, maxMs }: Waits): string =>
    `  ${name.padEnd(9)}${grouped(count).padStart(7)}${[p50Ms, p95Ms, p99Ms, maxMs].map(cell).join('')}`
  const head = `  ${''.padEnd(9)}${'jobs'.padStart(7)}${['p50', 'p95', 'p99', 'longest'].map((word) => word.padStart(9)).join('')}`
  const rows = ['high', 'normal', 'low'].flatMap((name) => {
    const found = waitsByPriority[name]
    return found === undefined ? [] : [row(name, found)]
  })
  return [
    paint('bold', 'Wait from due to first start'),
    paint('dim', head),
    row('all', waits),
    ...rows,
    '  All were enqueued at once, so nearly all of this is the backlog before them.',
  ].join('\n')
}

function findingsSection({ lost, doubled, early, strays }: Proof, paint: Paint): string {
  const all = [...lost, ...doubled, ...early, ...strays]
  if (all.length === 0) return ''
  const lines = all.slice(0, FINDINGS_SHOWN).map(findingLine)
  const more = all.length > FINDINGS_SHOWN ? [`  … and ${all.length - FINDINGS_SHOWN} more`] : []
  return [paint('bold', 'What is wrong'), ...lines, ...more].join('\n')
}

function findingLine({ key, jobId, why }: Finding): string {
  return `  ${printable(key)} (job ${printable(jobId)}): ${why}`
}

function verdict({ holds }: Proof, paint: Paint): string {
  if (holds) return paint('green', 'Proven from the log of the receiver and the store: nothing lost, nothing doubled.')
  return paint('red', 'NOT proven: see what is wrong above.')
}
