/** The receiver's memory: which effects it has applied, and a file of every request. Called by receiver.ts. */
import { closeSync, openSync, writeSync } from 'node:fs'
import type { ReceivedRequest } from './files.js'

export type Seen = Omit<ReceivedRequest, 'effect' | 'status'>

export class ReceiverLog {
  private readonly file: number
  private readonly applied = new Set<string>()
  private readonly requests = new Map<string, number>()
  private readonly fences = new Map<string, number>()

  constructor(path: string) {
    this.file = openSync(path, 'a')
  }

  /** Counts a request for a key; the first is 1. */
  arrived(key: string): number {
    const nth = (this.requests.get(key) ?? 0) + 1
    this.requests.set(key, nth)
    return nth
  }

  /**
   * Applies the effect unless its key has been applied before, or a later claim of the job was here before: then the
   * sender has lost the job and does not know it yet. Looking and applying are one step, as nothing is awaited.
   */
  apply(seen: Seen, status: number): ReceivedRequest {
    const effect = this.effectOf(seen)
    if (effect === 'applied') this.applied.add(seen.key)
    return this.write({ ...seen, effect, status: effect === 'stale' ? 409 : status })
  }

  /** Answers without an effect. */
  refuse(seen: Seen, status: number): ReceivedRequest {
    return this.write({ ...seen, effect: 'none', status })
  }

  close(): void {
    closeSync(this.file)
  }

  private effectOf({ key, fence }: Seen): ReceivedRequest['effect'] {
    if (this.applied.has(key)) return 'repeat'
    const last = this.fences.get(key) ?? 0
    if (fence < last) return 'stale'
    this.fences.set(key, fence)
    return 'applied'
  }

  /** Written before it is answered: what a sender was told is in the file. */
  private write(request: ReceivedRequest): ReceivedRequest {
    writeSync(this.file, `${JSON.stringify(request)}\n`)
    return request
  }
}
