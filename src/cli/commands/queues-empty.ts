/** `leasehold queues drain` and `purge`: the two ways to empty a queue. Called by the declarations in syntax/. */
import type { PurgeProgress } from '../../client/controller.js'
import type { Queue } from '../../client/queue.js'
import { QueueError } from '../../core/errors.js'
import type { JobState } from '../../core/job.js'
import { checkName } from '../../core/name.js'
import { grouped } from '../../core/show.js'
import { didYouMean } from '../../core/suggest.js'
import type { QueueCounts, QueueView } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { BulkProgress } from '../bulk-progress.js'
import { confirm } from '../confirm.js'
import { causeOf, causeText, exitCodeOf, untilAsked } from '../ending.js'
import { CommandError } from '../failure.js'
import type { Invocation } from '../invocation.js'
import { LiveBlock } from '../live-block.js'
import type { Terminal } from '../terminal.js'
import { asTyped } from '../typed.js'

const LOOK_MS = 1_000
const WAITING = ['ready', 'delayed', 'retrying', 'blocked'] as const satisfies readonly JobState[]

/** A queue that nobody has used yet is not made by a slip of the pen. */
async function knownQueue(queue: Queue, name: string): Promise<QueueView> {
  checkName(name, 'queue')
  const views = await queue.queues()
  const found = views.find((view) => view.queue === name)
  if (found !== undefined) return found
  const hint = didYouMean(
    name,
    views.map((view) => view.queue),
  )
  throw new CommandError('NOT_FOUND', `there is no queue "${name}"${hint}`, { fix: 'leasehold queues list' })
}

function sumOf(counts: QueueCounts, states: readonly JobState[]): { count: number; exact: boolean } {
  return {
    count: states.reduce((sum, state) => sum + counts[state].count, 0),
    exact: states.every((state) => counts[state].exact),
  }
}

export async function queuesPurge(
  invocation: Invocation,
  name: string,
  { dryRun, yes }: { dryRun?: true; yes?: true },
): Promise<Answer> {
  const { terminal } = invocation
  const queue = await invocation.store()
  await knownQueue(queue, name)
  const waiting = sumOf(await queue.counts(name), WAITING)
  const many = `${waiting.exact ? '' : 'about '}${grouped(waiting.count)} waiting ${waiting.count === 1 ? 'job' : 'jobs'}`
  if (dryRun)
    return {
      document: { queue: name, dryRun: true, waiting },
      text: () => `dry run, nothing was done: ${many} of ${name} would be deleted`,
    }
  await confirm(terminal, `Delete ${many} of ${name} for good?`, { ...(yes ? { yes } : {}), destructive: true })
  return untilAsked((asked) => purged(queue, terminal, { name, total: waiting.count }, asked))
}

async function purged(
  queue: Queue,
  terminal: Terminal,
  { name, total }: { name: string; total: number },
  asked: AbortSignal,
): Promise<Answer> {
  const progress = new BulkProgress(terminal, queue.connection.env, { word: 'deleted', total })
  let so: PurgeProgress = { deleted: 0, more: true }
  const onProgress = (now: PurgeProgress): void => {
    so = now
    progress.show(now.deleted)
  }
  try {
    await queue.purge(name, { signal: asked, onProgress })
  } catch (error) {
    progress.end()
    terminal.note(`${grouped(so.deleted)} deleted before it failed; the same command goes on with the rest`)
    throw error
  }
  progress.end()
  const cause = so.more ? causeOf(asked) : undefined
  if (cause !== undefined) terminal.note(`stopped by ${causeText(cause)}; the same command goes on with the rest`)
  return {
    document: { queue: name, dryRun: false, deleted: so.deleted, ended: cause === undefined ? 'all' : 'stopped' },
    text: () => `${grouped(so.deleted)} deleted from ${name}`,
    ...(cause === undefined ? {} : { exit: exitCodeOf(cause) }),
  }
}

export async function queuesDrain(
  invocation: Invocation,
  name: string,
  { timeout }: { timeout: string },
): Promise<Answer> {
  const { terminal } = invocation
  const queue = await invocation.store()
  const view = await knownQueue(queue, name)
  return untilAsked(async (asked) => {
    terminal.note(
      `${name} refuses new jobs from now on, until it is resumed; waiting for it to be empty, ${timeout} at most`,
    )
    await tellObstacles(queue, terminal, view)
    const over = new AbortController()
    const watching = watch(queue, terminal, name, AbortSignal.any([asked, over.signal]))
    let failure: unknown
    try {
      await queue.drain(name, { timeout, signal: asked })
    } catch (error) {
      failure = error
    }
    over.abort()
    await watching
    const cause = causeOf(asked)
    if (failure !== undefined && cause === undefined) throw explained(failure, name)
    const answer = await drained(queue, name)
    if (cause === undefined) return answer
    terminal.note(`stopped by ${causeText(cause)}`)
    return { ...answer, exit: exitCodeOf(cause) }
  })
}

/** A wait that cannot end without somebody's help. */
async function tellObstacles(queue: Queue, terminal: Terminal, { queue: name, paused }: QueueView): Promise<void> {
  const { count } = sumOf(await queue.counts(name), WAITING)
  if (count === 0) return
  const able = (await queue.workers()).some(({ queues }) => queues.includes(name))
  const yellow = (text: string): void => terminal.note(terminal.notePaint('yellow', asTyped(text)))
  if (paused)
    yellow(
      `${name} is paused: none of the ${grouped(count)} waiting jobs will start ("leasehold queues resume" ends both)`,
    )
  else if (!able)
    yellow(`no worker is alive that works on ${name}: none of the ${grouped(count)} waiting jobs will start`)
}

async function watch(queue: Queue, terminal: Terminal, name: string, over: AbortSignal): Promise<void> {
  if (!terminal.redraws) return
  const { env } = queue.connection
  const block = new LiveBlock(terminal)
  while (!over.aborted) {
    // What fails here fails in the wait, too, and is told there.
    const counts = await queue.counts(name).catch(() => undefined)
    if (counts !== undefined && !over.aborted) block.show([`${name}: ${leftText(counts)}`])
    await env.sleep(LOOK_MS, over)
  }
  block.end()
}

function leftText(counts: QueueCounts): string {
  return [...WAITING, 'running' as const].map((state) => `${grouped(counts[state].count)} ${state}`).join('  ')
}

/** Whoever stopped it early may have done so before anything was refused. */
async function drained(queue: Queue, name: string): Promise<Answer> {
  const counts = await queue.counts(name)
  const { draining } = await knownQueue(queue, name)
  const left = sumOf(counts, [...WAITING, 'running'])
  const state = left.count === 0 ? `${name} is empty` : `${name} is not empty: ${leftText(counts)}`
  return {
    document: { queue: name, status: left.count === 0 ? 'empty' : 'not empty', refusing: draining, left },
    text: () => (draining ? `${state}; ${refusing(name)}` : state),
  }
}

function refusing(name: string): string {
  return asTyped(`it refuses new jobs until "leasehold queues resume ${name}"`)
}

function explained(error: unknown, name: string): unknown {
  if (!(error instanceof QueueError) || error.code !== 'WAIT_TIMEOUT') return error
  return new CommandError('WAIT_TIMEOUT', error.message, {
    fix: `wait on with the same command, or end it with "leasehold queues resume ${name}"`,
    cause: error,
  })
}
