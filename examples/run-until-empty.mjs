/**
 * A worker for places where nothing may run for ever: cron, a serverless function, a deploy step. It does what is
 * ready, within a time, and ends; jobs that are not done by then are given back and wait for the next run.
 *
 *     * * * * *  node run-until-empty.mjs
 */
import { connect, defineJob, worker } from 'leasehold'
import { openStore } from './store.mjs'

const resize = defineJob('image.resize', { queue: 'images' })

const store = await openStore()
const queue = await connect(store.url)
await queue.enqueueMany(Array.from({ length: 100 }, (_, image) => resize.with({ image })))

const handler = resize.handle(async () => {
  await new Promise((done) => setTimeout(done, 20))
})
const stats = await worker(queue, [handler], { concurrency: 10 }).runUntilEmpty({ maxMs: '50s' })
console.log(`${stats.completed} done, ${stats.failed} failed`)

await queue.close()
await store.stop()
process.exitCode = stats.dead > 0 ? 1 : 0
