/** `leasehold tail`: jobs as they end. Called by the declarations in syntax/. */
import { need } from '../../client/need.js'
import type { Queue } from '../../client/queue.js'
import { durationMs, formatDuration } from '../../core/duration.js'
import { didYouMean } from '../../core/suggest.js'
import type { Ending, EndingState } from '../../storage/storage.js'
import type { Answer } from '../answer.js'
import { Away } from '../away.js'
import { EndedJobs, type EndedJobsReader } from '../ended-jobs.js'
import { untilAsked } from '../ending.js'
import type { Invocation } from '../invocation.js'
import type { Colour } from '../paint.js'
import { printable, safeJson } from '../printable.js'
import type { Terminal } from '../terminal.js'
import { isoOrNull, isoTime } from '../when.js'
import { broken, cutToWidth, widthOf } from '../width.js'
import { ENDING_STATES } from './tail-states.js'

export interface TailChoice {
  queue?: string
  kind?: string
  state?: EndingState[]
  since: string
  follow: boolean
}

const POLL_MS = 1_000
/** Above this age the hour alone would not tell which day. */
const DATED_FROM_MS = 12 * 3_600_000
/** Columns from which on there is room for parts of a second. */
const WIDE = 120
/** What an error needs at least to be told on the line of its job. */
const ERROR_WIDTH_MIN = 40
const INDENT = '    '
/** Lines below the job that an error takes at most. */
const ERROR_LINES_MAX = 3

export async function tail(invocation: Invocation, choice: TailChoice): Promise<Answer> {
  const { terminal } = invocation
  const queue = await invocation.store()
  const { storage, env } = queue.connection
  need(storage, 'diagnose', 'following endings')
  const { state: states = ENDING_STATES, queue: name, kind } = choice
  const filter = { states, ...(name === undefined ? {} : { queue: name }), ...(kind === undefined ? {} : { kind }) }
  const sinceMs = durationMs(choice.since, '--since')
  // Of several stores each is followed by its own clock.
  const stores = storage.partitions?.all.flatMap((one) => (one.trouble ? [] : one.storage)) ?? [storage]
  const followed = await Promise.all(
    stores.map(async (store) => {
      const diagnose = store.diagnose!
      const fromMs = (await diagnose.clock()).nowMs - sinceMs
      const read: EndedJobsReader = (request) => diagnose.endings({ ...filter, ...request })
      return new EndedJobs(read, env, { sinceMs, fromMs })
    }),
  )
  const tell = (one: Ending): void => terminal.answer(terminal.json ? jsonLine(one) : line(one, env.now(), terminal))
  await untilAsked(async (asked) => {
    if (name !== undefined) await tellUnknown(queue, name, terminal)
    const told = new Away((text) => terminal.note(terminal.notePaint('yellow', text)))
    for (let round = 0; !asked.aborted; round++) {
      try {
        for (const endings of followed) await endings.round(tell, asked)
        told.back()
      } catch (error) {
        // Whoever follows wants to go on after a failover; whoever begins wants to know.
        if (round === 0 || !choice.follow) throw error
        told.away(error)
      }
      if (!choice.follow) return
      await env.sleep(POLL_MS, asked)
    }
  })
  // Ctrl-C is the way to end it, and no failure.
  return {}
}

async function tellUnknown(queue: Queue, name: string, terminal: Terminal): Promise<void> {
  const known = (await queue.queues()).map((view) => view.queue)
  if (known.includes(name)) return
  terminal.note(terminal.notePaint('yellow', `there is no queue "${name}" yet${didYouMean(name, known)}`))
}

function jsonLine({ cursor: _, enqueuedAt, startedAt, endedAt, ...rest }: Ending): string {
  return safeJson({
    endedAt: isoTime(endedAt),
    ...rest,
    enqueuedAt: isoTime(enqueuedAt),
    startedAt: isoOrNull(startedAt),
  })
}

const COLOURS: Record<EndingState, Colour> = { completed: 'green', cancelled: 'yellow', dead: 'red' }

/**
 * `12:00:01.123Z completed email.send 0198…-… after 1.2s`, and for dead ones why: behind it where there is room, else
 * below. The id is never cut, as it is there to be copied.
 */
function line(ending: Ending, nowMs: number, { paint, width = Number.POSITIVE_INFINITY }: Terminal): string {
  const { id, kind, state, reason, attempts, ranMs } = ending
  const time = isoTime(ending.endedAt).slice(nowMs - ending.endedAt > DATED_FROM_MS ? 0 : 11)
  const when = width < WIDE ? time.replace(/\.\d+/, '') : time
  const ran = ranMs === null ? '' : ` after ${formatDuration(ranMs)}`
  const which = attempts > 1 ? ` attempt ${attempts}` : ''
  const head = `${paint('dim', when)} ${paint(COLOURS[state], state.padEnd(9))} ${paint('bold', kind)} ${id}`
  const whole = `${head}${which}${ran}`
  if (reason === undefined) return whole
  const why = whyOf(ending)
  const told = `${whole} ${paint('red', reason)}${why === '' ? '' : ': '}`
  const room = width - widthOf(told)
  if (why === '' || widthOf(why) <= room) return told + why
  if (room >= ERROR_WIDTH_MIN) return told + cutToWidth(why, room)
  // A terminal breaks the line anywhere; it is broken before what made the job die.
  const below = `${reason}${which}${ran}: ${why}`
  return [
    head,
    ...broken(below, width - INDENT.length, ERROR_LINES_MAX).map((text) => `${INDENT}${paint('red', text)}`),
  ].join('\n')
}

function whyOf({ error, note }: Ending): string {
  return printable(error === undefined ? (note ?? '') : `${error.name}: ${error.message}`)
}
