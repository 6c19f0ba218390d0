/** The trace of a simulation: one line for each thing that happens, and the digest by which two runs are compared. */
import { createHash } from 'node:crypto'

/** Hashing line by line cost more than the lines. */
const TOGETHER = 256

export class Trace {
  readonly lines: string[] = []
  private readonly hash = createHash('sha256')
  private fresh: string[] = []
  private count = 0

  /** `keep`: the lines are wanted, and not only their digest. */
  constructor(
    private readonly now: () => number,
    private readonly keep: 'lines' | 'digest',
  ) {}

  /** By virtual time: who, what. */
  add(process: string, what: string): void {
    const line = `${this.now().toFixed(3)} ${process} ${what}`
    this.count += 1
    this.fresh.push(line)
    if (this.fresh.length === TOGETHER) this.hashFresh()
    if (this.keep === 'lines') this.lines.push(line)
  }

  get size(): number {
    return this.count
  }

  /** Ends the trace. */
  digest(): string {
    this.hashFresh()
    return this.hash.digest('hex').slice(0, 32)
  }

  private hashFresh(): void {
    this.hash.update(`${this.fresh.join('\n')}\n`)
    this.fresh = []
  }
}
