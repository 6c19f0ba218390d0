/** Processes that are stopped where they stand, and go on later. Nothing else is between them and the store. */
import type { Fault } from '../../src/testing/chaos/acts.js'
import type { Crew } from '../crew.js'
import type { Begun, Stage, StageParts } from '../stage.js'

export class FreezeStage implements Stage {
  constructor(private readonly parts: StageParts) {}

  urlOf(): string {
    return this.parts.store.url
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun | undefined> {
    if (fault.act !== 'freeze') throw new Error(`no fault of this form: ${fault.act}`)
    const frozen = await crew.freeze(fault.whom)
    if (frozen.length === 0) return undefined
    return {
      touches: frozen.map(({ name }) => name),
      outage: crew.workers.every(({ sitting }) => sitting === undefined || frozen.includes(sitting.child)),
      end: async () => {
        for (const child of frozen) child.signal('SIGCONT')
      },
    }
  }

  async close(): Promise<void> {}
}
