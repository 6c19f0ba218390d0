/** The conformance suite on PostgreSQL: a schema for a run, emptied for each case, with a clock that can be moved. */
import { after, before, test } from 'node:test'
import { runConformance, type StoreFactory } from '../../src/testing/index.js'
import { type Scratch, scratch } from './postgres.js'

/** The clock runs on between two statements; a case may not tell such spans apart. */
const DRIFT_MS = 8_000

/** How a store is reached that is not reached directly. `deaf`: no hint comes that way, so nothing is promised of them. */
type Reach = (url: string) => Promise<{ readonly url: string; readonly deaf: boolean; stop(): Promise<void> }>

const directly: Reach = async (url) => ({ url, deaf: false, stop: async () => {} })

export function conformanceOn(major: 18 | 15, reach: Reach = directly): void {
  let store: Scratch
  let way: Awaited<ReturnType<Reach>>
  before(async () => {
    store = await scratch({ major })
    way = await reach(store.url)
  })
  after(async () => {
    await way.stop()
    await store.drop()
  })
  const factory: StoreFactory = () => postgresFactory(store, way.url, way.deaf)()
  runConformance(factory, { test })
}

/** Stores for one case each, in one schema that is emptied before. */
export function postgresFactory(store: Scratch, url: string, deaf = false): StoreFactory {
  return async () => {
    await emptied(store)
    const opened: { close(): Promise<void> }[] = []
    return {
      open: async () => {
        const storage = store.open({ url })
        opened.push(storage)
        return deaf ? Object.create(storage, { wake: { value: undefined } }) : storage
      },
      advance: store.advance,
      driftMs: DRIFT_MS,
      discard: async () => {
        await Promise.all(opened.map((storage) => storage.close()))
      },
    }
  }
}

async function emptied(store: Scratch): Promise<void> {
  await store.sql(`truncate :s.queue_limit, :s.fair_lane, :s.permit, :s.ready, :s.delayed, :s.lease, :s.claim_request, :s.revoked, :s.ended, :s.dead, :s.idempotency,
    :s.expiry, :s.idle, :s.worker, :s.queue`)
  await store.sql('update :s.test_clock set us = 0')
}
