/** Tells listeners which queues got work: the `wake` facet. Fed by every operation that makes a job ready. */
import type { Env } from '../../core/env.js'
import type { Wake } from '../storage.js'

interface Listener {
  queues: ReadonlySet<string>
  listener: (queues: string[]) => void
}

export class Hints implements Wake {
  private readonly listeners = new Set<Listener>()
  private readonly pending = new Set<string>()

  constructor(private readonly env: Env) {}

  async listen(queues: readonly string[], listener: (queues: string[]) => void): Promise<() => Promise<void>> {
    const entry = { queues: new Set(queues), listener }
    this.listeners.add(entry)
    return async () => {
      this.listeners.delete(entry)
    }
  }

  /** What comes in one turn is told at once, after the operation that caused it was answered. */
  tell(queue: string): void {
    if (this.listeners.size === 0) return
    if (this.pending.size === 0) this.env.soon(() => this.flush())
    this.pending.add(queue)
  }

  private flush(): void {
    const told = [...this.pending]
    this.pending.clear()
    for (const { queues, listener } of this.listeners) {
      const wanted = told.filter((queue) => queues.has(queue))
      if (wanted.length > 0) listener(wanted)
    }
  }
}
