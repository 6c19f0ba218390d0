/** Cases about what a payload, a result and a history may hold. */
import { strict as assert } from 'node:assert'
import type { Json } from '../../../core/job.js'
import type { ConformanceCase } from '../case.js'
import { returned, snoozed } from '../worker.js'

/** JSON texts that stores have been known to change, refuse or choke on. */
const ODD_TEXTS: Record<string, string> = {
  'nothing and emptiness': '[null,"",[],{},[[]],{"":""},0,false]',
  'a NUL character': '{"a\\u0000b":"\\u0000"}',
  'a lone surrogate': '["\\ud800","a\\udc00b"]',
  'keys of prototypes': '{"__proto__":{"polluted":true},"constructor":1,"toString":null}',
  'numbers at the edges': '[1e21,1.7976931348623157e308,5e-324,9007199254740991,-0.1,0.30000000000000004,1e-7]',
  'other scripts': '["日本語","🏴󠁧󠁢󠁥󠁮󠁧󠁿","e\u0301","\u202eabc","\ufeff"]',
  'quotes and control characters': '["\\"\'\\\\ \\b\\f\\n\\r\\t \u007f $1 :a %s {} \\u001f"]',
  'an order of keys': '{"z":1,"a":1,"10":1,"9":1}',
  'a bare string': '"text"',
  'a bare number': '-12.5',
  'a bare null': 'null',
}

export const PAYLOADS: ConformanceCase[] = [
  ...Object.entries(ODD_TEXTS).map(
    ([what, text]): ConformanceCase => ({
      name: `payload: ${what}`,
      promise: 'A payload arrives as it was sent.',
      needs: [],
      async run(kit) {
        await kit.store.enqueue([{ ...kit.job(), payload: text }])
        const { job } = await (await kit.worker()).takeOne()
        assert.deepEqual(job.payload, JSON.parse(text))
        assert.equal(JSON.stringify(job.payload), JSON.stringify(JSON.parse(text)))
        assert.equal(({} as { polluted?: boolean }).polluted, undefined)
      },
    }),
  ),
  {
    name: 'payload: 200 levels deep, and 200 KB long',
    promise: 'A payload arrives as it was sent.',
    needs: [],
    async run(kit) {
      const deep = Array.from({ length: 200 }).reduce<Json>((inner) => [inner], 'core')
      const long = 'äöü '.repeat(30_000)
      await kit.enqueue({ payload: deep }, { payload: long })
      const taken = await (await kit.worker()).take(2)
      assert.deepEqual(
        taken.map(({ job }) => job.payload),
        [deep, long],
      )
    },
  },
  {
    name: 'payload: odd texts are seen by people as by workers',
    promise: 'A payload and a result are shown as they are.',
    needs: ['inspect'],
    async run(kit) {
      const worker = await kit.worker()
      for (const text of Object.values(ODD_TEXTS)) {
        const job = { ...kit.job(), payload: text }
        await kit.store.enqueue([job])
        assert.deepEqual((await kit.view(job.id)).payload, JSON.parse(text))
        await worker.settle(returned(await worker.takeOne(), text))
        const { payload, result } = await kit.view(job.id)
        assert.deepEqual([payload, result], [JSON.parse(text), JSON.parse(text)])
      }
    },
  },
  {
    name: 'payload: a history comes back as it was written',
    promise: 'The store keeps a history and never edits it.',
    needs: [],
    async run(kit) {
      const worker = await kit.worker()
      await kit.enqueue({})
      const settlement = snoozed(await worker.takeOne(), 0)
      assert(settlement.to === 'delayed')
      const entry = {
        at: 1,
        attempt: 1,
        outcome: 'failed',
        error: { name: '\u0000', message: '\ud800', stack: 'ä\n"' },
      } as const
      const history = { ...settlement.history, progress: { a: [1e21, ''] }, entries: Array(20).fill(entry) }
      await worker.settle({ ...settlement, history })
      await kit.promote()
      assert.deepEqual((await worker.takeOne()).job.history, history)
    },
  },
]
