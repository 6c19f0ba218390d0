/** What an operator's process asks of its store, and is answered, as the history tells it. Called by links. */
import type { Control } from '../../storage/storage.js'
import type { JobOperation, QueueOperation, Said } from '../checker/history.js'
import type { Process } from './process.js'
import type { Witnessing } from './witnessing.js'

const OF_JOBS: readonly string[] = ['cancel', 'retry', 'redrive', 'discard'] satisfies (keyof Control)[]
const OF_QUEUES: readonly string[] = ['pause', 'resume', 'refuse', 'purge', 'order'] satisfies (keyof Control)[]

/** One call to the control facet. */
export class Asking {
  private readonly ask: string

  /** `number`: of the call, in its process. */
  constructor(
    private readonly process: Process,
    private readonly record: Witnessing,
    private readonly operation: string,
    private readonly args: readonly unknown[],
    number: number,
  ) {
    this.ask = `${process.name}#${number}`
  }

  /** It is sent; a call that is done twice is asked twice, and the second time nobody is answered. */
  sent(times: 'once' | 'twice'): void {
    for (const said of this.asked(this.ask)) this.record.write(this.process, said)
    if (times === 'twice') for (const said of this.asked(`${this.ask} again`)) this.record.write(this.process, said)
  }

  answered(answer: unknown): void {
    for (const said of this.told(answer)) this.record.write(this.process, said)
  }

  private asked(ask: string): Said[] {
    const [subject, more] = this.args
    if (OF_JOBS.includes(this.operation)) {
      const operation = this.operation as JobOperation['operation']
      const force = operation === 'redrive' ? { force: (more as { force: boolean }).force } : {}
      return (subject as string[]).map((id) => ({ what: 'asked', ask, operation, id, ...force }))
    }
    if (!OF_QUEUES.includes(this.operation)) return []
    const operation = this.operation as QueueOperation
    const order = operation === 'order' ? { order: more as 'ageing' } : {}
    return [{ what: 'asked of queue', ask, operation, queue: subject as string, ...order }]
  }

  private told(answer: unknown): Said[] {
    const { ask } = this
    const [subject] = this.args
    if (OF_JOBS.includes(this.operation))
      return (subject as string[]).flatMap((id, i) => {
        const said = (answer as string[])[i]!
        // It was left alone, as if nobody had asked.
        if (said === 'moved on') return []
        return [{ what: 'answered', ask, id, operation: this.operation, answer: said } as Said]
      })
    if (!OF_QUEUES.includes(this.operation)) return []
    const operation = this.operation as QueueOperation
    const deleted = operation === 'purge' ? { deleted: (answer as { deleted: number }).deleted } : {}
    return [{ what: 'answered of queue', ask, operation, queue: subject as string, ...deleted }]
  }
}
