/**
 * What a demo leaves behind, and where: enough for anybody to count again. Written by demo and receiver, read for the
 * proof.
 *
 *     store/             the PostgreSQL with the queue, as @leasehold/embedded keeps it; schema leasehold
 *     deliveries.jsonl   a line for each delivery that was enqueued: its key and the id of its job
 *     receiver.jsonl     a line for each request that the receiver took, appended before it answered
 *     demo.json          seed, instants, and which workers were killed and stopped
 *     proof.json         what was counted, with every delivery that was made more than once
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Delivery } from './plan.js'

export interface DemoFiles {
  dir: string
  store: string
  deliveries: string
  receiver: string
  demo: string
  proof: string
}

export function filesIn(dir: string): DemoFiles {
  return {
    dir,
    store: join(dir, 'store'),
    deliveries: join(dir, 'deliveries.jsonl'),
    receiver: join(dir, 'receiver.jsonl'),
    demo: join(dir, 'demo.json'),
    proof: join(dir, 'proof.json'),
  }
}

/** A delivery that is in the queue. */
export interface EnqueuedDelivery extends Delivery {
  jobId: string
}

/** One request as the receiver saw it. */
export interface ReceivedRequest {
  /** When it arrived; epoch milliseconds. */
  at: number
  key: string
  jobId: string
  attempt: number
  fence: number
  customer: string
  /** `applied`: now, for the first time. `repeat`: it had been. `stale`: from a worker that had lost the job. */
  effect: 'applied' | 'repeat' | 'stale' | 'none'
  /** What it answered, or would have: nobody may have been there to hear it. */
  status: number
}

export interface WorkerEnd {
  /** Its number in the demo. */
  number: number
  /** As the store knows it. */
  id: string
  at: number
}

/** What the demo did, for the proof. Instants in epoch milliseconds. */
export interface DemoRecord {
  seed: number
  jobs: number
  /** Deliveries that were enqueued twice, and how many of those the queue knew by their key. */
  repeated: number
  duplicates: number
  enqueueStartedAt: number
  enqueueEndedAt: number
  killed: WorkerEnd[]
  stopped: (WorkerEnd & { tookMs: number; givenBack: number })[]
}

export async function writeLines(path: string, items: readonly unknown[]): Promise<void> {
  await writeFile(path, items.map((item) => `${JSON.stringify(item)}\n`).join(''))
}

export async function readLines<Item>(path: string): Promise<Item[]> {
  const lines = (await readFile(path, 'utf8')).split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Item)
}

export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`)
}

export async function readJson<Value>(path: string): Promise<Value> {
  return JSON.parse(await readFile(path, 'utf8')) as Value
}
