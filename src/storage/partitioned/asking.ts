/** Asks all stores of several at once, and puts up with those that are away. Called by the facets. */
import { QueueError } from '../../core/errors.js'
import type { Storage } from '../storage.js'
import { isAway, type Member } from './member.js'

export interface Heard<T> {
  member: Member
  answer: T
}

/** What was answered, in the order of the list, and who did not. */
export interface Answers<T> {
  heard: Heard<T>[]
  silent: { member: Member; error: QueueError }[]
}

/** For what only looks. Rejects where nobody answers, and with what is no outage. */
export function readAll<T>(
  members: readonly Member[],
  ask: (storage: Storage, member: Member) => Promise<T>,
): Promise<Answers<T>> {
  return gathered(members, (member) => member.read((storage) => ask(storage, member)))
}

/** For what changes something, in each store for itself. As `readAll`. */
export function changeAll<T>(members: readonly Member[], ask: (storage: Storage) => Promise<T>): Promise<Answers<T>> {
  return gathered(members, (member) => member.change(ask))
}

async function gathered<T>(members: readonly Member[], call: (member: Member) => Promise<T>): Promise<Answers<T>> {
  const answers: Answers<T> = { heard: [], silent: [] }
  const settled = await Promise.allSettled(members.map(call))
  settled.forEach((one, index) => {
    const member = members[index]!
    if (one.status === 'fulfilled') answers.heard.push({ member, answer: one.value })
    else if (isAway(one.reason)) answers.silent.push({ member, error: one.reason })
    else throw one.reason
  })
  if (answers.heard.length === 0 && answers.silent.length > 0) throw answers.silent[0]!.error
  return answers
}

/** For what has to be done everywhere to be true. It is done where it can be; asked again it does no harm. */
export async function changeEach(members: readonly Member[], ask: (storage: Storage) => Promise<void>): Promise<void> {
  refuseSilent(await changeAll(members, ask), 'it was done in the others; call it again')
}

/** Throws where somebody did not answer. */
export function refuseSilent({ silent }: Pick<Answers<unknown>, 'silent'>, about: string): void {
  if (silent.length === 0) return
  const { error } = silent[0]!
  throw new QueueError(error.code, `${error.message} (${about})`, { cause: error })
}
