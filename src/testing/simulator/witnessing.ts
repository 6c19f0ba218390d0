/**
 * What the processes of a simulation witness: each writes at the moment at which it happens, into the history that the
 * checker judges and into the trace. A dead process writes nothing.
 */
import type { QueueEvent } from '../../observe/events.js'
import type { HistoryEvent, Said, Witnessed } from '../checker/history.js'
import { saidOf } from '../checker/told.js'
import type { VirtualTime } from '../virtual-time.js'
import type { Process } from './process.js'
import type { Trace } from './trace.js'

export class Witnessing {
  readonly events: Witnessed[] = []
  /** Jobs that somebody was told of, for those who steer. */
  readonly known: string[] = []

  constructor(
    private readonly time: VirtualTime,
    readonly trace: Trace,
  ) {}

  write(process: Process, said: Said): void {
    if (process.alive) this.add(process.name, said)
  }

  /** Of the world: about a process, whatever became of it. */
  add(process: string, said: Said): void {
    if (said.what === 'told' && said.outcome === 'created' && said.id !== undefined) this.known.push(said.id)
    this.events.push({ process, event: { at: this.time.monotonic(), ...said } as HistoryEvent })
    this.trace.add(process, lineOf(said))
  }

  /** What client and worker of the process tell. */
  hear(process: Process, event: QueueEvent): void {
    const said = saidOf(event)
    // Claims are written as the store answers them.
    if (said !== undefined && said.what !== 'claimed') this.write(process, said)
    else if (process.alive) this.trace.add(process.name, event.type)
  }
}

function lineOf({ what, ...facts }: Said): string {
  let line: string = what
  for (const [name, value] of Object.entries(facts)) line += ` ${name}=${Array.isArray(value) ? value.length : value}`
  return line
}
