/** Rules about the store as a whole: its keys, its fences, its queues, and what it holds at the end. Read by the checker. */
import { wasPurged } from './acceptance-rules.js'
import type { SceneFault, SceneRule } from './rule.js'
import { CLOCK_STEP_MS } from './run-rules.js'
import { shutSince } from './shut-queues.js'
import { acceptedIds, type ClaimCall, exists, mayHaveBeen, type QueueAsk, type Scene, type Story } from './story.js'

export const STORE_RULES: readonly SceneRule[] = [
  {
    name: 'one job for one key',
    promise: 'While a key is kept all enqueues with it make one job, and duplicates name that one.',
    breach: 'settledTwice',
    reads: 'the keys of the plan, what producers were told, and the jobs that came of it',
    faults: (scene, _, stories) => keysOf(stories).flatMap((group) => keyFaults(group, scene)),
    judged: (_, __, stories) => keysOf(stories).filter((group) => idsOf(group).size > 0).length,
  },
  {
    name: 'what is missing was purged',
    promise: 'What was enqueued is the sum of what the store has, what was discarded and what a purge said it deleted.',
    breach: 'lost',
    reads: 'accepted jobs of queues that were purged, the answers of the purges, and the records of the store',
    faults: (scene, _, stories) => purgesOf(scene).flatMap((purges) => purgeFaults(purges, scene, stories)),
    judged: (scene) => purgesOf(scene).length,
  },
  {
    name: 'a later claim has a larger fence',
    promise:
      'A claim that is sent after another one was answered has larger fences than that one, whatever it is about.',
    breach: 'otherFaults',
    reads: 'the calls of claims and what they brought, by one clock',
    faults: (scene) => (scene.clocks === 'apart' ? [] : fallenFences(scene.calls)),
    judged: (scene) => (scene.clocks === 'apart' ? 0 : scene.calls.filter(({ fences }) => fences.length > 0).length),
  },
  {
    name: 'a paused queue begins nothing',
    promise: 'After a pause was answered no claim of the queue begins, until it is resumed.',
    breach: 'otherFaults',
    reads: 'the answers to pauses, and the calls of claims, by one clock',
    faults: claimsWhilePaused,
    judged: (scene) => (scene.calls.length === 0 ? 0 : scene.queueAsks.filter(isAnsweredPause).length),
  },
]

// Keys.

function keysOf(stories: readonly Story[]): Story[][] {
  const groups = new Map<string, Story[]>()
  for (const story of stories) {
    const key = story.expected?.key
    if (key === undefined) continue
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [story])
    else group.push(story)
  }
  return [...groups.values()]
}

/** Those that are there, or were promised. What a caller's own transaction has rolled back is neither. */
function idsOf(group: readonly Story[]): Set<string> {
  const ids = new Set<string>()
  for (const { told, traces } of group) {
    for (const { outcome, id, transaction } of told)
      if (id !== undefined && (outcome === 'duplicate' || (outcome === 'created' && transaction === undefined)))
        ids.add(id)
    for (const trace of traces) if (exists(trace)) ids.add(trace.id)
  }
  return ids
}

function keyFaults(group: readonly Story[], scene: Scene): SceneFault[] {
  const ids = idsOf(group)
  if (ids.size < 2 || mayHaveBeenFreed(group, scene)) return []
  const { key, sort } = group[0]!.expected!
  return [{ weight: 1, ids: [...ids], why: `${sort} jobs with the key ${key} are ${ids.size}: ${[...ids].join(', ')}` }]
}

/** By the deletion of its job, or as it was kept long enough. */
function mayHaveBeenFreed(group: readonly Story[], { queueAsks }: Scene): boolean {
  const queue = group[0]!.expected!.queue
  if (queueAsks.some((ask) => ask.operation === 'purge' && (queue === undefined || ask.queue === queue))) return true
  const traces = group.flatMap((story) => story.traces)
  if (traces.some(({ asks }) => asks.some((ask) => mayHaveBeen(ask, 'discard', 'discarded')))) return true
  const { keyKeptMs } = group[0]!.expected!
  const sent = group.flatMap(({ sentAt, told }) => [sentAt ?? Infinity, ...told.map(({ at }) => at)])
  return keyKeptMs !== undefined && Math.max(...sent) - Math.min(...sent) + CLOCK_STEP_MS >= keyKeptMs
}

// Purges.

/** Of each queue that was purged; only where each purge was answered and nothing else deletes records. */
function purgesOf({ queueAsks, retention, has }: Scene): QueueAsk[][] {
  if (!has.records || retention === 'pruned') return []
  const purges = queueAsks.filter(({ operation }) => operation === 'purge')
  const queues = new Set(purges.map(({ queue }) => queue))
  return [...queues]
    .map((name) => purges.filter(({ queue }) => queue === name))
    .filter((all) => all.every(({ deleted }) => deleted !== undefined))
}

function purgeFaults(purges: readonly QueueAsk[], scene: Scene, stories: readonly Story[]): SceneFault[] {
  const { queue } = purges[0]!
  const deleted = purges.reduce((sum, purge) => sum + purge.deleted!, 0)
  const missing = new Set<string>()
  let unsure = 0
  for (const story of stories) {
    if (story.expected?.queue !== queue || !wasPurged(queue, story.sentAt, scene)) continue
    // Who keeps no record, or was not told, tells nothing about what a purge deleted.
    if ((story.expected.keep ?? 'all') !== 'all' || !isKnown(story)) unsure += 1
    else for (const id of missingOf(story, scene)) missing.add(id)
  }
  const found = missing.size
  if (found <= deleted && found + unsure >= deleted) return []
  const why = `of queue ${queue} ${found} accepted jobs are missing (${unsure} more may be), and ${deleted} were purged`
  return [{ weight: Math.max(1, found - deleted), ids: [...missing].slice(0, IDS_MAX), why }]
}

const IDS_MAX = 20

function isKnown({ told }: Story): boolean {
  return told.length > 0 && told.every(({ outcome, transaction }) => outcome !== 'unknown' && transaction === undefined)
}

function missingOf(story: Story, scene: Scene): string[] {
  return [...acceptedIds(story, scene)].filter((id) => {
    const trace = scene.traces.get(id)
    if (trace === undefined) return true
    return trace.records.length === 0 && !trace.asks.some((ask) => mayHaveBeen(ask, 'discard', 'discarded'))
  })
}

// Fences.

/**
 * Calls in the order in which they were first sent: against the largest fence that was told by then. Each fence counts from
 * the answer that brought it, as a call may be answered for nobody, and then asked again.
 */
function fallenFences(calls: readonly ClaimCall[]): SceneFault[] {
  const told = calls.flatMap(({ fences }) => fences).sort((a, b) => a.at - b.at)
  const faults: SceneFault[] = []
  let [next, largest] = [0, Number.NEGATIVE_INFINITY]
  for (const { askedAt, fences, worker } of calls) {
    for (; next < told.length && told[next]!.at < askedAt; next++) largest = Math.max(largest, told[next]!.fence)
    const fallen = fences.find(({ fence }) => fence <= largest)?.fence
    if (fallen !== undefined)
      faults.push({ weight: 1, ids: [worker], why: `${worker} got fence ${fallen} after ${largest} had been answered` })
  }
  return faults
}

// Pauses.

function isAnsweredPause({ operation, answeredAt }: QueueAsk): boolean {
  return operation === 'pause' && answeredAt !== undefined
}

function claimsWhilePaused(scene: Scene): SceneFault[] {
  if (scene.clocks === 'apart' || !scene.queueAsks.some(isAnsweredPause)) return []
  const faults: SceneFault[] = []
  for (const { id, holds } of scene.traces.values())
    for (const { claimed, process } of holds) {
      if (claimed?.call === undefined) continue
      const { queue, call } = claimed
      const until = shutSince(scene, queue, 'pause', call.askedAt)
      // A request that is asked again after the pause may take then what it did not before.
      if (until === undefined || call.answeredAt === undefined || call.answeredAt >= until) continue
      faults.push({ weight: 1, ids: [id], why: `${process} claimed job ${id} of queue ${queue}, which was paused` })
    }
  return faults
}
