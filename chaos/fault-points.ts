/**
 * A store with points at which its process can be killed: before a call is sent, while it is under way, or when it is
 * answered and nobody has read the answer. Wraps the store of a worker process; notes which suspect runs alone there.
 */
import type { CutOperation, Moment } from '../src/testing/chaos/acts.js'
import type { LogFile } from '../src/testing/checker/log-file.js'
import type { Claim, Settlement, Storage } from '../src/testing/index.js'
import { overlaid } from './overlay.js'

export type CutOrder = Extract<Moment, { at: 'call' }>

/** Within it most calls are still under way. */
const DURING_MS_MAX = 3

export class FaultPoints {
  private armed: CutOrder | undefined
  private alone: { id: string; fence: number; crashesAlone: number } | undefined

  constructor(private readonly log: LogFile) {}

  /** The next call that fits ends this process. */
  arm(order: CutOrder): void {
    this.armed = order
  }

  wrap(storage: Storage): Storage {
    const calls: Partial<Storage> = {
      claim: async (request) => {
        const claim = await this.cut(
          'claim',
          () => storage.claim(request),
          (answer) => answer.leases.length > 0,
        )
        this.claimed(claim, request.finished ?? [])
        return claim
      },
      settle: async (settlements) => {
        const answers = await this.cut(
          'settle',
          () => storage.settle(settlements),
          () => true,
        )
        this.settled(settlements)
        return answers
      },
      takeOver: (request) =>
        this.cut(
          'takeOver',
          () => storage.takeOver(request),
          (answer) => answer.leases.length > 0,
        ),
      upkeep: overlaid(storage.upkeep, {
        promote: (limit) =>
          this.cut(
            'promote',
            () => storage.upkeep.promote(limit),
            (answer) => answer.moved.length > 0,
          ),
      }),
    }
    return overlaid(storage, calls)
  }

  /** `worth`: an answer that brought nothing is no loss, and the next one is waited for. */
  private async cut<Answer>(
    operation: CutOperation,
    call: () => Promise<Answer>,
    worth: (answer: Answer) => boolean,
  ): Promise<Answer> {
    const { armed } = this
    if (armed?.operation !== operation) return call()
    if (armed.cut === 'before') this.die(armed)
    const answer = call()
    if (armed.cut === 'during') setTimeout(() => this.die(armed), Math.random() * DURING_MS_MAX)
    else if (worth(await answer)) this.die(armed)
    return answer
  }

  /**
   * A second crash while alone would quarantine a job that is as good as any: nobody can tell it from a poison job. The
   * driver spares such a worker, and so does this.
   */
  private die(order: CutOrder): void {
    if (this.alone !== undefined && this.alone.crashesAlone > 0) return
    this.log.write({ what: 'dying', operation: order.operation, cut: order.cut })
    process.kill(process.pid, 'SIGKILL')
    // Nothing of this process goes on, also if the signal takes a moment.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }

  /** Written before its start can be reported: a kill from then on counts as one while alone. */
  private claimed({ leases }: Claim, finished: readonly Settlement[]): void {
    this.settled(finished)
    const [lease] = leases
    if (lease === undefined) return
    if (!lease.alone) {
      this.over()
      return
    }
    const { id, history } = lease.jobs[0]!
    this.alone = { id, fence: lease.fence, crashesAlone: history?.crashesAlone ?? 0 }
    this.log.write({ what: 'alone', id, crashesAlone: this.alone.crashesAlone })
  }

  private settled(settlements: readonly Settlement[]): void {
    if (settlements.some(({ fence, to }) => fence === this.alone?.fence && to !== 'started')) this.over()
  }

  private over(): void {
    if (this.alone === undefined) return
    this.log.write({ what: 'alone over', id: this.alone.id })
    this.alone = undefined
  }
}
