/** `leasehold doctor`: looks for what is wrong with the store, or will be. Called by the declarations in syntax/. */
import { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import { partitionsIn } from '../../core/partition-list.js'
import type { Partition } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-codes.js'
import type { Invocation } from '../invocation.js'
import type { Colour, Paint } from '../paint.js'
import { printable } from '../printable.js'
import type { TableView } from '../table.js'
import { asTyped } from '../typed.js'
import { wrapped } from '../width.js'
import { CHECKS, type Check } from './checks.js'
import { type CheckFinding, type Finding, many, type Verdict, worstOf } from './finding.js'
import { NotTold, Site } from './site.js'

export async function doctor(invocation: Invocation, { strict = false }: { strict?: boolean }): Promise<Answer> {
  const findings = await examined(invocation)
  const worst = worstOf(findings.map(({ verdict }) => verdict))
  const failed = worst === 'fail' || (strict && worst === 'warn')
  return {
    document: { verdict: worst, checks: findings },
    text: (view) => page(findings, view),
    ...(failed ? { exit: EXIT.failed } : {}),
  }
}

/** Without a schema there is nothing more to look at; without a store, nothing at all: that is an error like any other. */
async function examined(invocation: Invocation): Promise<CheckFinding[]> {
  let queue: Queue
  try {
    queue = await invocation.store()
  } catch (error) {
    const missing = error instanceof QueueError && (error.code === 'SCHEMA_MISSING' || error.code === 'SCHEMA_OUTDATED')
    if (!missing) throw error
    // The message says what to run.
    return [
      { check: 'schema', verdict: 'fail', text: `${error.message} (${error.code})`, measured: { code: error.code } },
    ]
  }
  const { partitions } = queue.connection.storage
  if (partitions === undefined) return findingsOf(new Site(queue, invocation.schema ?? 'leasehold'))
  const list = partitionsIn(invocation.url)!.partitions
  const all: CheckFinding[] = []
  for (const [index, partition] of partitions.all.entries())
    all.push(...(await ofPartition(queue, partition, list[index]!.schema ?? invocation.schema)))
  return all
}

async function findingsOf(site: Site): Promise<CheckFinding[]> {
  const findings: CheckFinding[] = []
  for (const check of CHECKS) findings.push({ check: check.name, ...(await found(check, site)) })
  return findings
}

/** Each store has its own health. */
async function ofPartition({ connection }: Queue, partition: Partition, schema = 'leasehold'): Promise<CheckFinding[]> {
  const { name, trouble, storage } = partition
  if (trouble !== undefined)
    return [
      { check: 'server', verdict: 'fail', text: trouble.message, measured: { partition: name, code: trouble.code } },
    ]
  const findings = await findingsOf(new Site(new Queue({ ...connection, storage }), schema))
  return findings.map(({ text, measured, ...rest }) => ({
    ...rest,
    text: `partition "${name}": ${text}`,
    measured: { partition: name, ...measured },
  }))
}

/** One that fails says why, and hinders no other: a role may not see everything. */
async function found(check: Check, site: Site): Promise<Finding> {
  try {
    return await check.find(site)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const text = error instanceof NotTold ? message : `it could not be looked at: ${message}`
    return { verdict: 'unknown', text, measured: {} }
  }
}

const COLOURS: Record<Verdict, Colour> = { ok: 'green', warn: 'yellow', fail: 'red', unknown: 'dim' }
const VERDICT_WIDTH = 'unknown'.length + 1
const CHECK_WIDTH = 'connections'.length + 1
/** On narrower terminals the text stands below. */
const BESIDE_WIDTH_MIN = 70

function page(findings: readonly CheckFinding[], { width, paint }: TableView): string {
  return [...findings.map((finding) => findingText(finding, { width, paint })), '', summary(findings, paint)].join('\n')
}

function findingText({ check, verdict, text, items = [], fix }: CheckFinding, { width, paint }: TableView): string {
  const beside = width === undefined || width >= BESIDE_WIDTH_MIN
  const indent = beside ? VERDICT_WIDTH + CHECK_WIDTH : 2
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - indent
  const head = `${paint(COLOURS[verdict], verdict.padEnd(VERDICT_WIDTH))}${paint('bold', beside ? check.padEnd(CHECK_WIDTH) : check)}`
  const lines = [
    ...wrapped(printable(asTyped(text)), room),
    ...items.flatMap((item) => hanging('- ', printable(item), room)),
    ...(fix === undefined ? [] : hanging('fix: ', printable(asTyped(fix)), room).map((line) => paint('dim', line))),
  ]
  const first = beside ? `${head}${lines.shift()}` : head
  return [first, ...lines.map((line) => ' '.repeat(indent) + line)].join('\n')
}

function hanging(mark: string, text: string, room: number): string[] {
  return wrapped(text, room - mark.length).map((line, at) => (at === 0 ? mark : ' '.repeat(mark.length)) + line)
}

function summary(findings: readonly CheckFinding[], paint: Paint): string {
  const count = (verdict: Verdict): number => findings.filter((one) => one.verdict === verdict).length
  const parts: [Verdict, string][] = [
    ['ok', `${count('ok')} ok`],
    ['warn', many(count('warn'), 'warning')],
    ['fail', many(count('fail'), 'failure')],
    ['unknown', `${count('unknown')} not looked at`],
  ]
  return parts
    .filter(([verdict]) => verdict === 'ok' || count(verdict) > 0)
    .map(([verdict, text]) => paint(COLOURS[verdict], text))
    .join(', ')
}
