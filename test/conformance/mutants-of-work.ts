/** Stores that are broken where workers meet them: claim, order, beat, settle, take-over, suspects. */
import type { JobRow } from '../../src/storage/memory/jobs.js'
import { giveBack } from '../../src/storage/memory/state.js'
import type { Settlement } from '../../src/storage/storage.js'
import type { Mutant } from './mutant.js'

export const MUTANTS_OF_WORK: Mutant[] = [
  {
    name: 'a settlement goes by the job, not by the fence',
    caught: [
      'settle: completed under a dead fence changes nothing',
      'settle: ready under a dead fence changes nothing',
      'settle: a fence of an earlier run is no fence of the next one',
    ],
    spoil(store) {
      const settle = store.settle.bind(store)
      const claim = store.claim.bind(store)
      const jobs = new Map<string, JobRow>()
      const living = ({ fence, ordinal }: Settlement): { fence: number; ordinal: number } => {
        const job = jobs.get(`${fence} ${ordinal}`)
        const leases = store.inside.workers.all().flatMap(({ id }) => store.inside.leases.of(id))
        const lease = leases.find(({ slots }) => slots.some((slot) => slot.job === job))
        if (lease === undefined) return { fence, ordinal }
        return { fence: lease.fence, ordinal: lease.slots.findIndex((slot) => slot.job === job) }
      }
      store.claim = async (request) => {
        const answer = await claim(request)
        for (const { fence } of answer.leases)
          for (const { ordinal, job } of store.inside.leases.get(fence)!.slots) jobs.set(`${fence} ${ordinal}`, job)
        return answer
      }
      store.settle = async (settlements) => settle(settlements.map((one) => ({ ...one, ...living(one) })))
    },
  },
  {
    name: 'a repeated settlement is answered ok',
    caught: [
      'settle: completed is done once, however often it is sent',
      'settle: delayed is done once, however often it is sent',
    ],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) =>
        (await settle(settlements)).map((answer) => (answer === 'already' ? 'ok' : answer))
    },
  },
  {
    name: 'a cancel is forgotten when the job is settled',
    caught: ['settle: what somebody wants cancelled does not run again, and ends as it ended otherwise'],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) => {
        for (const { fence } of settlements)
          for (const { job } of store.inside.leases.get(fence)?.slots ?? []) job.cancelling = false
        return settle(settlements)
      }
    },
  },
  {
    name: 'a claim asked again takes new jobs',
    caught: [
      'claim: asked again it gives the same batch and nothing else',
      'claim: sent twice at once it takes one batch',
    ],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => {
        const row = store.inside.workers.get(request.worker)
        row?.taken.clear()
        return claim(request)
      }
    },
  },
  {
    name: 'a claim registers whoever asks',
    caught: [
      'claim: a worker that was written off gets nothing',
      'claim: a worker that never registered gets nothing, and its settlements are heard',
      'take over: a late claim of the dead takes nothing',
    ],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => {
        const { workers } = store.inside
        const info = { name: '', queues: [], concurrency: 1, leaseMs: 60_000, beatMs: 20_000 }
        const beat = { worker: request.worker, n: 1, known: 0, leases: [], started: [], mainLagMs: 0, info }
        if (workers.get(request.worker) === undefined) workers.register(beat, store.inside.now())
        return claim(request)
      }
    },
  },
  {
    name: 'a claim settles only after it took',
    caught: ['claim: settles what it brings along before it takes'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async ({ finished = [], ...request }) => ({
        ...(await claim(request)),
        settled: await store.settle(finished),
      })
    },
  },
  {
    name: 'fences fall',
    caught: ['claim: each lease has a fence larger than all before'],
    spoil(store) {
      const claim = store.claim.bind(store)
      const settle = store.settle.bind(store)
      const turned = <T extends { fence: number }>(one: T): T => ({ ...one, fence: 1_000_000 - one.fence })
      store.claim = async (request) => {
        const answer = await claim(request)
        return { ...answer, leases: answer.leases.map(turned) }
      }
      store.settle = async (settlements) => settle(settlements.map(turned))
    },
  },
  {
    name: 'kinds are ignored',
    caught: ['claim: kinds that a worker cannot run are passed over and stay'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => claim({ ...request, kinds: ['work', 'other', 'new'] })
    },
  },
  {
    name: 'no kind is apart',
    caught: ['claim: kinds named apart get leases of their own, others share them'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => claim({ ...request, apart: [] })
    },
  },
  {
    name: 'shares are ignored',
    caught: ['claim: each queue gives up to its share, then what others left'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) =>
        claim({ ...request, queues: request.queues.map((queue) => ({ ...queue, share: request.limit })) })
    },
  },
  {
    name: 'levels passed over get no turn',
    caught: [
      'order: one start in sixteen goes to the oldest of the levels passed over',
      'order: weighted tiers share fifteen starts eight, four, two, one',
    ],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) =>
        claim({ ...request, queues: request.queues.map((queue) => ({ ...queue, turn: 0 })) })
    },
  },
  {
    name: 'every queue is strict',
    caught: [
      'order: a minute of waiting counts as a level',
      'order: a change takes effect with the next claim, and ageing can be had back',
    ],
    spoil(store) {
      const { queues } = store.inside
      const get = queues.get.bind(queues)
      queues.get = (queue) => ({ ...get(queue), order: 'strict' })
    },
  },
  {
    name: 'what is given back goes to the end of its lane',
    caught: [
      'order: what was given back goes ahead of the backlog that grew meanwhile',
      'take over: what comes back goes ahead of the backlog that grew meanwhile',
      'retry: goes ahead of the backlog that came in after the job',
    ],
    spoil(store) {
      const { jobs } = store.inside
      jobs.toFront = (job) => jobs.toBack(job, store.inside.now())
    },
  },
  {
    name: 'a front entry goes ahead of all',
    caught: ['order: what was given back overtakes nothing that was due before it'],
    spoil(store) {
      const { jobs } = store.inside
      const toFront = jobs.toFront.bind(jobs)
      jobs.toFront = (job) => toFront(job, 0)
    },
  },
  {
    name: 'beats give back what was taken over',
    caught: ['beat: never gives back what was taken over'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        for (const lease of store.inside.leases.of(request.worker))
          if (lease.request === null) giveBack(store.inside, [lease], store.inside.now())
        return beat(request)
      }
    },
  },
  {
    name: 'beats give back what is not known yet',
    caught: ['beat: leaves alone what a request took that is not known yet'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        for (const lease of store.inside.leases.of(request.worker))
          if (!request.leases.includes(lease.fence)) giveBack(store.inside, [lease], store.inside.now())
        return beat(request)
      }
    },
  },
  {
    name: 'beats give nothing back',
    caught: [
      'beat: gives back what a known request took and nobody holds',
      'beat: a lease that it names no longer goes back',
    ],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => beat({ ...request, known: 0 })
    },
  },
  {
    name: 'an older beat counts',
    caught: ['beat: an older one is stale and changes nothing', 'beat: a late one does not keep a silent worker alive'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        const row = store.inside.workers.get(request.worker)
        return beat({ ...request, n: row === undefined ? request.n : row.n + 1 })
      }
    },
  },
  {
    name: 'a beat that is sent again is no sign of life',
    caught: [
      'beat: one that is sent again is a sign of life',
      'beat: one that is sent again counts for patience too, and for the main loop',
    ],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        const row = store.inside.workers.get(request.worker)
        const before = row?.n === request.n ? { ...row } : {}
        const answer = await beat(request)
        if (row !== undefined) Object.assign(row, before)
        return answer
      }
    },
  },
  {
    name: 'a repeated beat gives back what it does not name',
    caught: ['beat: sent twice it takes nothing away the second time'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        const row = store.inside.workers.get(request.worker)
        if (row !== undefined && row.n === request.n) row.n -= 1
        return beat(request)
      }
    },
  },
  {
    name: 'whatever a dead fence held is lost',
    caught: [
      'settle: a repeat of what was done is known as one after the rest of its lease was given back',
      'settle: a repeat of what was done is known as one after the rest of its lease was taken over',
    ],
    spoil(store) {
      const { leases } = store.inside
      leases.diedOpen = (fence) => leases.isDead(fence)
    },
  },
  {
    name: 'beats call settled leases lost',
    caught: ['beat: a lease whose jobs are all settled is not lost'],
    spoil(store) {
      store.inside.leases.isDead = (fence) => store.inside.leases.get(fence) === undefined
    },
  },
  {
    name: 'starts told by beats are dropped',
    caught: ['take over: knows which handlers had started, from beats and from settlements'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => beat({ ...request, started: [] })
    },
  },
  {
    name: 'the main loop may hang for ever',
    caught: ['take over: a main loop that hangs ends its leases, although its thread still beats'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => beat({ ...request, mainLagMs: 0 })
    },
  },
  {
    name: 'anybody takes over at any time',
    caught: [
      'take over: nothing by a worker that has just come',
      'take over: a gap of two beats sets the patience back, a shorter one does not',
    ],
    spoil(store) {
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const row = store.inside.workers.get(request.worker)
        if (row !== undefined) row.steadySince = 0
        return takeOver(request)
      }
    },
  },
  {
    name: 'the asker counts as alive whatever its beats',
    caught: ['take over: after an outage nobody takes over from anybody'],
    spoil(store) {
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const row = store.inside.workers.get(request.worker)
        if (row !== undefined) Object.assign(row, { lastBeatAt: store.inside.now(), steadySince: 0 })
        return takeOver(request)
      }
    },
  },
  {
    name: 'a take-over asked again gives only what is new',
    caught: ['take over: asked again it gives the same leases'],
    spoil(store) {
      const takeOver = store.takeOver.bind(store)
      const told = new Set<number>()
      store.takeOver = async (request) => {
        const answer = await takeOver(request)
        const leases = answer.leases.filter(({ fence }) => !told.has(fence))
        for (const { fence } of leases) told.add(fence)
        return { ...answer, leases }
      }
    },
  },
  {
    name: 'the death of an heir is a second crash',
    caught: ['take over: when the heir dies too, the same crash comes again and no second one'],
    spoil(store) {
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async (request) => {
        const others = store.inside.workers.all().filter(({ id }) => id !== request.worker)
        for (const lease of others.flatMap(({ id }) => store.inside.leases.of(id)))
          for (const slot of lease.slots) slot.crash = null
        return takeOver(request)
      }
    },
  },
  {
    name: 'a take-over has no limit',
    caught: ['take over: at most so many jobs, in whole leases'],
    spoil(store) {
      const takeOver = store.takeOver.bind(store)
      store.takeOver = async ({ worker }) => takeOver({ worker, limit: 1_000 })
    },
  },
  {
    name: 'suspects are jobs like any other',
    caught: [
      'suspect: after its second crash a job is not handed out among others',
      'suspect: given back or failed it stays one',
    ],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) =>
        settle(settlements.map((one) => ('suspect' in one ? { ...one, suspect: false } : one)))
    },
  },
  {
    name: 'any number of suspects run at once',
    caught: [
      'suspect: one at a time in a queue, and the next when it is settled',
      'suspect: nobody else gets one of the queue while the crash of the last is not settled',
    ],
    spoil(store) {
      store.inside.leases.runsAlone = () => false
    },
  },
  {
    name: 'one suspect of all queues at a time',
    caught: ['suspect: two queues do not wait for each other'],
    spoil(store) {
      const { leases, workers } = store.inside
      leases.runsAlone = () => workers.all().some(({ id }) => leases.of(id).some(({ alone }) => alone))
    },
  },
  {
    name: 'what a worker leaves behind at its good bye is stuck',
    caught: ['unregister: what was left behind is not lost'],
    spoil(store) {
      store.unregister = async (worker) => store.inside.workers.delete(worker)
      store.inside.leases.holders = () => []
    },
  },
  {
    name: 'a claim always says that there is more',
    caught: ['claim: one that took all there was of several priorities says that there is no more'],
    spoil(store) {
      const claim = store.claim.bind(store)
      store.claim = async (request) => ({ ...(await claim(request)), more: true })
    },
  },
  {
    name: 'a record tells of a start that never was',
    caught: ['settle: what never started has no start in its record'],
    spoil(store) {
      const settle = store.settle.bind(store)
      store.settle = async (settlements) => settle(settlements.map((each) => ({ startedAfterMs: 0, ...each })))
    },
  },
  {
    name: 'a worker that was written off hears of no lease',
    caught: ['beat: to a worker that was written off all is lost that it names'],
    spoil(store) {
      const beat = store.beat.bind(store)
      store.beat = async (request) => {
        const answer = await beat(request)
        return answer.status === 'gone' ? { ...answer, lost: [] } : answer
      }
    },
  },
]
