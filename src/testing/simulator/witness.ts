/** What a worker is told by its store, written down at the moment it is read. Wraps the link of each worker process. */
import type { Beat, BeatAnswer, Claim, ClaimRequest, SettleAnswer, Settlement, Storage } from '../../storage/storage.js'
import type { Process } from './process.js'
import type { Witnessing } from './witnessing.js'

export function witnessed(store: Storage, process: Process, record: Witnessing): Storage {
  const witness = new Witness(store, process, record)
  const own: Partial<Storage> = {
    claim: (request) => witness.claim(request),
    settle: (settlements) => witness.settle(settlements),
    beat: (beat) => witness.beat(beat),
  }
  return new Proxy(store, {
    get: (target, name) => {
      if (Object.hasOwn(own, name)) return own[name as keyof Storage]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

class Witness {
  private alone: { id: string; fence: number } | undefined

  constructor(
    private readonly store: Storage,
    private readonly process: Process,
    private readonly record: Witnessing,
  ) {}

  async claim(request: ClaimRequest): Promise<Claim> {
    const { process, record } = this
    const kinds = request.request === 1 ? { kinds: request.kinds } : {}
    record.write(process, { what: 'claiming', worker: request.worker, request: request.request, ...kinds })
    const claim = await this.store.claim(request)
    this.settled(request.finished ?? [])
    const { status } = claim
    record.write(process, { what: 'claim answered', worker: request.worker, request: request.request, status })
    this.claimed(request, claim)
    return claim
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    const answers = await this.store.settle(settlements)
    this.settled(settlements)
    return answers
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    const confirmedAt = this.process.monotonic()
    const answer = await this.store.beat(beat)
    if (answer.status === 'ok')
      this.record.write(this.process, { what: 'worker', worker: beat.worker, is: 'beaten', confirmedAt })
    else if (answer.status === 'gone') this.over()
    return answer
  }

  private claimed({ worker, request }: ClaimRequest, { leases, nowMs, status }: Claim): void {
    if (status === 'gone') this.over()
    for (const { fence, alone, jobs } of leases)
      for (const { id, queue, kind, priority, history, waitedMs } of jobs) {
        const attempt = (history?.attempts ?? 0) + 1
        const facts = { id, worker, fence, queue, kind, priority, attempt, waitedMs, claimedAt: nowMs, request }
        this.record.write(this.process, { what: 'claimed', ...facts, ...(alone ? { alone } : {}) })
        if (alone) this.begin(id, fence, history?.crashesAlone ?? 0)
      }
  }

  private begin(id: string, fence: number, crashesAlone: number): void {
    this.alone = { id, fence }
    this.record.write(this.process, { what: 'alone', id, crashesAlone })
    this.process.spared = crashesAlone > 0
  }

  private settled(settlements: readonly Settlement[]): void {
    if (settlements.some(({ fence, to }) => fence === this.alone?.fence && to !== 'started')) this.over()
  }

  private over(): void {
    if (this.alone === undefined) return
    this.record.write(this.process, { what: 'alone over', id: this.alone.id })
    this.alone = undefined
    this.process.spared = false
  }
}
