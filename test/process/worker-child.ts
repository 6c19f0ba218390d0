/** A worker in a process of its own, to be killed, stopped or frozen. Its effects go to a file that outlives it. */
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, defineJob, worker } from '../../src/index.js'

/** What a test tells it, as JSON in the first argument. */
export interface ChildSettings {
  url: string
  schema: string
  effects: string
  options?: Record<string, unknown>
}

export const pause = defineJob<{ name: string; ms: number }>('pause', { queue: 'process' })
export const poison = defineJob<{ how: 'at once' | 'late' | 'loop' }>('poison', {
  queue: 'process',
  retry: { attempts: 10, backoff: { base: '100ms' } },
})
export const failing = defineJob<{ name: string }>('failing', {
  queue: 'process',
  retry: { attempts: 6, backoff: { base: '10ms', cap: '20ms' } },
})
export const once = defineJob<{ name: string; ms: number }>('once', { queue: 'process', delivery: 'at-most-once' })

/** Keeps the event loop busy the first time it runs, whichever process that is. */
export const spin = defineJob<{ name: string; ms: number }>('spin', { queue: 'process' })

const handlers = (effects: string) => {
  const effect = (text: string): void => appendFileSync(effects, `${text}\n`)
  return [
    pause.handle(async ({ name, ms }, { attempt, signal }) => {
      effect(`start ${name} ${attempt} ${process.pid}`)
      await sleep(ms, undefined, { signal }).catch(() => {})
      if (signal.aborted) throw new Error(`stopped: ${(signal.reason as { code?: string }).code}`)
      effect(`end ${name} ${attempt} ${process.pid}`)
    }),
    poison.handle(async ({ how }) => {
      effect(`poison ${how} ${process.pid}`)
      if (how === 'loop') for (;;);
      if (how === 'late') await sleep(500)
      process.kill(process.pid, 'SIGKILL')
    }),
    spin.handle(({ name, ms }) => {
      const before = readFileSync(effects, 'utf8').includes(`spin ${name} `)
      effect(`spin ${name} ${process.pid}`)
      const until = Date.now() + (before ? 0 : ms)
      while (Date.now() < until);
      effect(`spun ${name} ${process.pid}`)
    }),
    failing.handle(({ name }, { attempt }) => {
      effect(`fail ${name} ${attempt}`)
      throw new Error('as always')
    }),
    once.handle(async ({ name, ms }) => {
      effect(`start ${name} ${process.pid}`)
      await sleep(ms)
      effect(`end ${name} ${process.pid}`)
    }),
  ]
}

if (process.argv[2] !== undefined) {
  const settings = JSON.parse(process.argv[2]) as ChildSettings
  const queue = await connect(settings.url, { schema: settings.schema, migrate: false })
  const running = worker(queue, handlers(settings.effects), { concurrency: 20, ...settings.options })
  queue.connection.events.on((event) => {
    if (!event.type.startsWith('job.')) appendFileSync(settings.effects, `event ${JSON.stringify(event)}\n`)
  })
  process.on('warning', ({ name, message }) => appendFileSync(settings.effects, `warning ${name} ${message}\n`))
  process.on('message', () => process.send?.(running.health()))
  const ended = running.run()
  process.send?.('up')
  await ended
  await queue.close()
  process.disconnect?.()
}
