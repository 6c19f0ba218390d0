/** A server that dies, stops, loses a session or ends them all, and comes back at its address. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../../src/testing/chaos/acts.js'
import type { Crew } from '../crew.js'
import { answers, type OwnServer } from '../server.js'
import type { Begun, Stage, StageParts } from '../stage.js'

const LOOK_MS = 50
const RECOVERY_MS_MAX = 60_000

export class RestartStage implements Stage {
  private readonly server: OwnServer

  constructor(private readonly parts: StageParts) {
    this.server = parts.store.server!
  }

  urlOf(): string {
    return this.parts.store.url
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun> {
    if (fault.act !== 'restart') throw new Error(`no fault of this form: ${fault.act}`)
    const { server } = this
    const touches = crew.namesOf(crew.everybody)
    switch (fault.way) {
      case 'kill':
        server.kill()
        return { touches, outage: true, end: () => server.restart() }
      case 'stop':
        await server.stop()
        return { touches, outage: true, end: () => server.restart() }
      case 'crash':
        await server.crash()
        return { touches, outage: false, end: () => untilItAnswers(server.adminUrl) }
      case 'sessions':
        await server.endSessions()
        return { touches, outage: false, end: async () => {} }
    }
  }

  async close(): Promise<void> {}
}

async function untilItAnswers(url: string): Promise<void> {
  const deadline = performance.now() + RECOVERY_MS_MAX
  while (!(await answers(url))) {
    if (performance.now() > deadline) throw new Error(`the server has not recovered in ${RECOVERY_MS_MAX / 1_000} s`)
    await sleep(LOOK_MS)
  }
}
