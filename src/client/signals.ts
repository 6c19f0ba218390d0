/** One listener for each AbortSignal, however many wait on it: Node warns of a leak from the eleventh on. Called by waits. */
export class Signals {
  private readonly held = new Map<AbortSignal, { runs: Set<() => void>; listener: () => void }>()

  /** Calls `run` when the signal fires. Returns the function that ends it. */
  on(signal: AbortSignal, run: () => void): () => void {
    const one = this.held.get(signal) ?? this.listen(signal)
    one.runs.add(run)
    return () => {
      if (!one.runs.delete(run) || one.runs.size > 0) return
      signal.removeEventListener('abort', one.listener)
      this.held.delete(signal)
    }
  }

  private listen(signal: AbortSignal) {
    const runs = new Set<() => void>()
    const listener = (): void => {
      for (const run of [...runs]) run()
    }
    const one = { runs, listener }
    signal.addEventListener('abort', listener, { once: true })
    this.held.set(signal, one)
    return one
  }
}
