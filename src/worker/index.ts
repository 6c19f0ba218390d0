/** The public face of workers. Imported by src/index.ts and the CLI. */
export type { WorkerOptions } from './options.js'
export type { Stats as WorkerStats } from './stats.js'
export { type HealthReason, Worker, type WorkerHealth, worker } from './worker.js'
