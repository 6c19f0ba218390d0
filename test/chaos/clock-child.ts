/** A process that says what its clocks show, in its main thread and in another one. Started by the test of wrong clocks. */
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const EVERY_MS = 50

if (isMainThread) main()
else setInterval(() => parentPort!.postMessage(Date.now()), EVERY_MS)

function main(): void {
  const began = performance.now()
  const other = new Worker(new URL(import.meta.url))
  other.on('message', (thread: number) => {
    const called = Date().includes(String(new Date().getFullYear()))
    const passedMs = performance.now() - began
    process.send!({
      main: Date.now(),
      thread,
      called,
      made: Date.parse(new Date().toISOString()),
      given: new Date(1_000).getTime(),
      passedMs,
    })
  })
  process.once('disconnect', () => process.exit())
}
