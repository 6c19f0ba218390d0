/** `leasehold dev`: a PostgreSQL for development with the queue in it, until Ctrl-C. Called by the declarations in syntax/. */
import type { Queue } from '../../client/queue.js'
import { connect } from '../../connect.js'
import type { JobState } from '../../core/job.js'
import type { Answer } from '../answer.js'
import { type EmbeddedServer, startEmbedded } from '../embedded.js'
import { onEnding } from '../ending.js'
import type { Invocation } from '../invocation.js'
import { LiveBlock } from '../live-block.js'
import { printable, safeJson } from '../printable.js'
import type { Terminal } from '../terminal.js'
import { LISTED_STATES } from '../values.js'

const LOOK_MS = 1_000

export async function dev(invocation: Invocation, { dir }: { dir: string }): Promise<Answer | undefined> {
  invocation.refuseStore('dev')
  const { terminal, schema } = invocation
  const asked = new AbortController()
  const stopHearing = onEnding(() => asked.abort())
  try {
    const server = await startEmbedded(dir)
    try {
      const queue = await connect(server.url, schema === undefined ? {} : { schema })
      try {
        tellStarted(terminal, server, dir)
        await watch(queue, terminal, asked.signal)
      } finally {
        await queue.close()
      }
    } finally {
      await server.stop()
    }
    terminal.note(`stopped; its files stay in ${printable(dir)}`)
    return undefined
  } finally {
    stopHearing()
  }
}

function tellStarted(terminal: Terminal, server: EmbeddedServer, dir: string): void {
  const { url, pid, version, attached } = server
  if (terminal.json) {
    terminal.answer(safeJson({ url, dir: server.dir, pid, version, attached }))
    return
  }
  const { paint } = terminal
  const how = attached ? 'joined the server that runs there' : 'started'
  terminal.answer(
    [
      `PostgreSQL ${version} ${how}, files in ${printable(server.dir)}`,
      '',
      `  ${paint('bold', url)}`,
      '',
      'In a program:',
      `  const queue = await connect('embedded:${printable(dir)}')`,
      'On the command line:',
      `  export LEASEHOLD_URL='embedded:${printable(dir)}'`,
      '  npx leasehold enqueue hello \'{"name":"Ada"}\'',
      '  npx leasehold jobs list',
      '',
    ].join('\n'),
  )
  terminal.note(terminal.notePaint('dim', 'Ctrl-C stops it, once nobody else uses it.'))
}

/** Until it is asked to end: a line of counts where there is a terminal to draw on, silence elsewhere. */
async function watch(queue: Queue, terminal: Terminal, asked: AbortSignal): Promise<void> {
  const { env } = queue.connection
  const block = new LiveBlock(terminal)
  while (!asked.aborted) {
    if (terminal.redraws && !terminal.json) block.show([await liveLine(queue, terminal)])
    await env.sleep(LOOK_MS, asked)
  }
  block.end()
}

async function liveLine(queue: Queue, { notePaint }: Terminal): Promise<string> {
  try {
    const totals = new Map<JobState, number>()
    const queues = await queue.queues()
    for (const { queue: name } of queues) {
      const counts = await queue.counts(name)
      for (const state of LISTED_STATES) totals.set(state, (totals.get(state) ?? 0) + counts[state].count)
    }
    const workers = await queue.workers()
    const words = LISTED_STATES.map((state) => `${notePaint('dim', state)} ${totals.get(state) ?? 0}`)
    const head = [`${notePaint('dim', 'workers')} ${workers.length}`, `${notePaint('dim', 'queues')} ${queues.length}`]
    return [...head, ...words].join('  ')
  } catch (error) {
    return notePaint('yellow', `the store does not answer: ${printable((error as Error).message)}`)
  }
}
