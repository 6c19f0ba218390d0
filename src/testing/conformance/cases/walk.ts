/** Random walks: whatever is done, in whatever order, no job is lost, doubled or run after its end. */
import { strict as assert } from 'node:assert'
import type { SettleAnswer, Settlement } from '../../../storage/storage.js'
import { generator } from '../../virtual-time.js'
import type { ConformanceCase } from '../case.js'
import type { Kit } from '../kit.js'
import { afterCrash, BEAT_MS, FATES, type Held, heldIn, LEASE_MS, returned, type TestWorker } from '../worker.js'

const STEPS = 150

export const WALKS: ConformanceCase[] = [1, 2, 3, 4].map((seed) => ({
  name: `walk: nothing is lost or doubled in ${STEPS} random steps, seed ${seed}`,
  promise: 'What was enqueued is the sum over the places, and an end is an end.',
  needs: ['control', 'inspect'],
  async run(kit: Kit) {
    const walk = new Walk(kit, generator(seed))
    for (let step = 0; step < STEPS; step++) await walk.step()
    await walk.finish()
  },
}))

class Walk {
  private workers: TestWorker[] = []
  private held: Held[] = []
  private readonly ids: string[] = []
  private readonly completed = new Set<string>()
  private readonly sent: { settlement: Settlement; answer: SettleAnswer }[] = []
  private readonly acts = [
    this.enqueue,
    this.enqueue,
    this.claim,
    this.claim,
    this.claim,
    this.settle,
    this.settle,
    this.repeat,
    this.forget,
    this.die,
    this.recover,
    this.operate,
    this.pass,
  ]

  constructor(
    private readonly kit: Kit,
    private readonly random: () => number,
  ) {}

  async step(): Promise<void> {
    await this.acts[this.below(this.acts.length)]!.call(this)
    await this.kit.promote()
    await this.assertConserved()
  }

  /** Everybody dies, one worker comes and does all that is left. */
  async finish(): Promise<void> {
    const last = await this.kit.worker()
    await this.kit.pass(2 * LEASE_MS, last)
    for (let round = 0; round < 50; round++) {
      for (const held of await last.takeOver()) await last.settle(afterCrash(held))
      await this.kit.pass(BEAT_MS * 30, last)
      await this.kit.promote()
      for (const suspects of [false, true]) {
        for (const held of await last.take(50, { suspects })) await this.complete(last, held)
      }
    }
    await this.assertConserved()
    const { ready, delayed, retrying, running } = await this.kit.inspect.counts('q')
    assert.deepEqual(
      [ready, delayed, retrying, running].map(({ count }) => count),
      [0, 0, 0, 0],
    )
  }

  private async enqueue(): Promise<void> {
    const due = { delayMs: this.below(3) === 0 ? this.below(60_000) : 0 }
    const sketch = { due, priority: this.below(16), spec: { attempts: 4 } }
    this.ids.push(...(await this.kit.enqueueMany(1 + this.below(4), sketch)))
  }

  private async claim(): Promise<void> {
    if (this.workers.length < 3) this.workers.push(await this.kit.worker())
    const worker = this.any(this.workers)!
    const options = { suspects: this.below(4) === 0, limit: 1 + this.below(5), turn: this.below(64) }
    const claim = await worker.claim(options)
    if (claim.status === 'gone') this.workers = this.workers.filter((other) => other !== worker)
    const again = this.below(3) === 0 ? await worker.claim({ ...options, request: worker.request }) : claim
    assert.deepEqual(
      again.leases.map(({ fence }) => fence),
      claim.leases.map(({ fence }) => fence),
    )
    for (const held of heldIn(claim)) {
      assert(!this.completed.has(held.job.id), 'a completed job was handed out again')
      this.held.push(held)
    }
  }

  private async settle(): Promise<void> {
    const held = this.any(this.held)
    if (held === undefined) return
    const settlement = this.any(Object.values(FATES))!(held)
    this.held = this.held.filter((other) => other !== held)
    const [answer] = await this.kit.store.settle([settlement])
    this.sent.push({ settlement, answer: answer! })
    if (answer === 'ok' && settlement.to === 'completed') this.completed.add(held.job.id)
  }

  private async repeat(): Promise<void> {
    const sent = this.any(this.sent)
    if (sent === undefined) return
    const [answer] = await this.kit.store.settle([sent.settlement])
    // Of a fence that died an hour ago nobody remembers that it was lost.
    const mayBeLost = sent.answer === 'lost'
    assert(
      answer === 'already' || (mayBeLost && answer === 'lost'),
      `a repeat of ${sent.answer} was answered ${answer}`,
    )
  }

  /** A claim whose answer never arrived: its leases go back with the next beat. */
  private async forget(): Promise<void> {
    const worker = this.any(this.workers)
    if (worker === undefined) return
    const kept = worker.holding
    const lost = heldIn(await worker.claim({ limit: 1 + this.below(5) }))
    worker.holding = kept
    await worker.beat()
    const answers = await this.kit.store.settle(lost.map((held) => returned(held)))
    assert(!answers.includes('ok'), 'a job that was given back was settled')
  }

  private async die(): Promise<void> {
    const dead = this.any(this.workers)
    this.workers = this.workers.filter((worker) => worker !== dead)
    await this.pass()
  }

  private async recover(): Promise<void> {
    await this.kit.pass(LEASE_MS + this.kit.marginMs, ...this.workers)
    for (const worker of this.workers) {
      for (const held of await worker.takeOver(1 + this.below(5))) await worker.settle(afterCrash(held))
    }
  }

  private async operate(): Promise<void> {
    const ids = [this.any(this.ids), this.any(this.ids)].filter((id) => id !== undefined)
    const { control } = this.kit
    if (this.below(3) === 0) await control.cancel(ids)
    else if (this.below(2) === 0) await control.retry(ids)
    else await control.redrive(ids, { force: true })
  }

  private async pass(): Promise<void> {
    await this.kit.pass(1 + this.below(2 * BEAT_MS), ...this.workers)
  }

  private async complete(worker: TestWorker, held: Held): Promise<void> {
    assert(!this.completed.has(held.job.id), 'a completed job was handed out again')
    const [answer] = await worker.settle(returned(held))
    if (answer === 'ok') this.completed.add(held.job.id)
  }

  private async assertConserved(): Promise<void> {
    const counts = Object.values(await this.kit.inspect.counts('q'))
    assert.equal(
      counts.reduce((sum, { count }) => sum + count, 0),
      this.ids.length,
      'the sum over the places',
    )
  }

  private below(bound: number): number {
    return Math.floor(this.random() * bound)
  }

  private any<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)]
  }
}
