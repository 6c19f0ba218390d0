/**
 * The store of the simulated world, as the far end of every link: up, down or only reading. What reaches it is done there
 * at once, one operation at a time. Driven by the weather, called by links.
 */
import type { VirtualTime } from '../virtual-time.js'
import type { Trace } from './trace.js'

export type ServerState = 'up' | 'down' | 'read-only'

export class Server {
  state: ServerState = 'up'
  /** Rises with each restart: what was under way before it is never answered. */
  life = 0

  /** `before`: done before each operation, as a store of real time has to be told what time it is. */
  constructor(
    private readonly before: (() => Promise<void>) | undefined,
    private readonly time: VirtualTime,
    private readonly trace: Trace,
    /** Told when no worker can reach it any more, and when all can again. */
    private readonly onOutage: (is: 'begun' | 'over', kind: ServerState) => void,
  ) {}

  /** Goes down; what is under way dies, done or not. */
  restart(downMs: number): void {
    if (this.state !== 'up') return
    this.life += 1
    this.turn('down', downMs)
  }

  /** As after a fail-over to a server that was not promoted yet. */
  onlyRead(ms: number): void {
    if (this.state === 'up') this.turn('read-only', ms)
  }

  /** For good: the storm is over. */
  recover(): void {
    this.turn('up', 0)
  }

  /** Does it now. Virtual time waits until a real store has answered. */
  perform<Answer>(operation: () => Promise<Answer>): Promise<Answer> {
    const answer = this.before === undefined ? operation() : this.before().then(operation)
    this.time.hold(answer)
    return answer
  }

  private turn(state: ServerState, ms: number): void {
    if (state !== this.state) this.onOutage(state === 'up' ? 'over' : 'begun', state === 'up' ? this.state : state)
    this.state = state
    this.trace.add('store', `is ${state}`)
    if (state === 'up') return
    this.time.timer(ms, () => {
      if (this.state === state) this.turn('up', 0)
    })
  }
}
