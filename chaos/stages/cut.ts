/** A network of its own for each process, that can be spoiled. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CutWay, Fault } from '../../src/testing/chaos/acts.js'
import { type Direction, TcpProxy } from '../../test/support/proxy.js'
import type { Crew } from '../crew.js'
import type { Begun, Role, Stage, StageParts } from '../stage.js'

const CLOSE_EVERY_MS = 700
/** Systems find out about a connection that is half open only later than the processes have to have done it themselves. */
const FOUND_OUT_MS = 20_000

const LOST: Partial<Record<CutWay, readonly Direction[]>> = {
  swallow: ['requests', 'answers'],
  'swallow requests': ['requests'],
  'swallow answers': ['answers'],
}

export class CutStage implements Stage {
  private readonly ended = new AbortController()

  private constructor(private readonly proxies: Record<Role, TcpProxy[]>) {}

  static async open({ store, workers, producers }: StageParts): Promise<CutStage> {
    const some = (count: number): Promise<TcpProxy[]> =>
      Promise.all(Array.from({ length: count }, () => TcpProxy.to(store.url, { read: 'not' })))
    return new CutStage({ worker: await some(workers), producer: await some(producers) })
  }

  urlOf(role: Role, index: number): string {
    return this.proxies[role][index]!.url
  }

  async begin(fault: Fault, crew: Crew): Promise<Begun> {
    if (fault.act !== 'cut') throw new Error(`no fault of this form: ${fault.act}`)
    const { whom, way, delayMs } = fault
    const met = [
      ...whom.workers.map((i) => this.proxies.worker[i]!),
      ...whom.producers.map((i) => this.proxies.producer[i]!),
    ]
    const all = whom.workers.length === this.proxies.worker.length
    return {
      touches: crew.namesOf(whom),
      outage: all && (way === 'refuse' || way === 'swallow' || way === 'swallow requests'),
      end: await this.spoil(met, way, delayMs),
    }
  }

  async close(): Promise<void> {
    this.ended.abort()
    await Promise.all([...this.proxies.worker, ...this.proxies.producer].map((proxy) => proxy.close()))
  }

  private async spoil(met: readonly TcpProxy[], way: CutWay, delayMs: number): Promise<() => Promise<void>> {
    switch (way) {
      case 'close': {
        const cut = (): void => met.forEach((proxy) => void proxy.cut())
        cut()
        const again = setInterval(cut, CLOSE_EVERY_MS)
        return async () => clearInterval(again)
      }
      case 'refuse':
        await Promise.all(met.map((proxy) => proxy.refuse()))
        return async () => {
          await Promise.all(met.map((proxy) => proxy.accept()))
        }
      case 'delay':
        for (const proxy of met) proxy.delayMs = delayMs
        return async () => {
          for (const proxy of met) proxy.delayMs = 0
        }
      default:
        for (const proxy of met) proxy.lose(LOST[way]!)
        return async () => {
          for (const proxy of met) proxy.lose([])
          void this.findOut(met)
        }
    }
  }

  private async findOut(met: readonly TcpProxy[]): Promise<void> {
    const ends = met.map((proxy) => proxy.halfOpen())
    await sleep(FOUND_OUT_MS, undefined, { signal: this.ended.signal }).catch(() => {})
    for (const end of ends) end()
  }
}
