/** What operators do, over all stores: jobs by id are asked for everywhere, what is set on a queue is set everywhere. */
import type { Control, Storage } from '../storage.js'
import { changeAll, changeEach, refuseSilent } from './asking.js'
import type { Member } from './member.js'

export function controlOf(members: readonly Member[]): Control {
  const everywhere = (ask: (control: Control) => Promise<void>): Promise<void> =>
    changeEach(members, (storage) => ask(storage.control!))
  return {
    cancel: (ids, only) => byId(members, ids, (storage, part) => storage.control!.cancel(part, only)),
    retry: (ids, only) => byId(members, ids, (storage, part) => storage.control!.retry(part, only)),
    redrive: (ids, options) => byId(members, ids, (storage, part) => storage.control!.redrive(part, options)),
    discard: (ids, only) => byId(members, ids, (storage, part) => storage.control!.discard(part, only)),
    pause: (queue) => everywhere((control) => control.pause(queue)),
    resume: (queue) => everywhere((control) => control.resume(queue)),
    refuse: (queue) => everywhere((control) => control.refuse(queue)),
    order: (queue, order) => everywhere((control) => control.order(queue, order)),
    limit: (queue, limits) => everywhere((control) => control.limit(queue, limits)),
    purge: async (queue, limit) => {
      const answers = await changeAll(members, (storage) => storage.control!.purge(queue, limit))
      const deleted = answers.heard.reduce((sum, { answer }) => sum + answer.deleted, 0)
      // What was deleted is told; a store that is away is told when the others are done.
      if (deleted === 0) refuseSilent(answers, 'what waits in the others was deleted')
      return { deleted, more: answers.silent.length > 0 || answers.heard.some(({ answer }) => answer.more) }
    },
  }
}

/**
 * The answer of the store that knows the job. No id tells where it lives: a chosen one may be anywhere. So each store is
 * asked, which costs a look at its indexes. Rejects where nobody who answers knows one of them and somebody is silent.
 */
async function byId<Answer extends string>(
  members: readonly Member[],
  ids: readonly string[],
  ask: (storage: Storage, ids: readonly string[]) => Promise<(Answer | 'unknown')[]>,
): Promise<(Answer | 'unknown')[]> {
  const answers = await changeAll(members, (storage) => ask(storage, ids))
  const found = ids.map((_, index) =>
    answers.heard.map(({ answer }) => answer[index]!).find((one) => one !== 'unknown'),
  )
  const missing = found.filter((one) => one === undefined).length
  if (missing > 0) refuseSilent(answers, `it may hold ${missing} of the jobs; those of the others were changed`)
  return found.map((one) => one ?? 'unknown')
}
