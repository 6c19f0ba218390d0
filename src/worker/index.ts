/** The public face of workers. Imported by src/index.ts and the CLI. */
export type { HealthReason, StoreHealth, WorkerHealth } from './health.js'
export type { WorkerOptions } from './options.js'
export type { Stats as WorkerStats } from './stats.js'
export { Worker, worker } from './worker.js'
