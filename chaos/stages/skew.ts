/** Clocks that are wrong, each in its own way, and jump. The store's clock is right. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault } from '../../src/testing/chaos/acts.js'
import { firstSkewMs } from '../../src/testing/chaos/fault-acts.js'
import type { Crew } from '../crew.js'
import type { Begun, Role, Stage, StageParts } from '../stage.js'

export class SkewStage implements Stage {
  constructor(private readonly parts: StageParts) {
    mkdirSync(this.folder, { recursive: true })
    for (const [role, count] of [
      ['worker', parts.workers],
      ['producer', parts.producers],
    ] as const)
      for (let index = 0; index < count; index++) this.set(role, index, firstSkewMs(parts.seed, `${role} ${index}`))
  }

  urlOf(): string {
    return this.parts.store.url
  }

  clockOf(role: Role, index: number): string {
    return join(this.folder, `${role}-${index}`)
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun> {
    if (fault.act !== 'skew') throw new Error(`no fault of this form: ${fault.act}`)
    const { whom, offsetMs } = fault
    for (const index of whom.workers) this.set('worker', index, offsetMs)
    // Not all by the same, or their clocks would agree with each other.
    for (const index of whom.producers) this.set('producer', index, -offsetMs)
    return { touches: crew.namesOf(whom), outage: false, end: async () => {} }
  }

  async close(): Promise<void> {}

  private get folder(): string {
    return join(this.parts.dir, 'clocks')
  }

  private set(role: Role, index: number, offsetMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(offsetMs)
    writeFileSync(this.clockOf(role, index), bytes)
  }
}
