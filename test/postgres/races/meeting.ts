/**
 * Two operations that want the same rows, played in each order: the first one before the second, the first one held with
 * the rows in its hands until it commits, and the same until it is rolled back. Used by the tables of this folder.
 */
import assert from 'node:assert/strict'
import type { PostgresStorage } from '../../../src/storage/postgres/index.js'
import type { Point } from '../../support/points.js'
import { stopped } from '../../support/points.js'
import type { Scene } from './scene.js'

/** One of the two, as the matrix of docs/races.md calls it. */
export interface Actor {
  readonly operation: string
  /** Where it has all that it wants and has not committed. */
  readonly point: Point
  /** What is made of the job before it comes, where the scene does not have it so. */
  readonly before?: (scene: Scene) => Promise<void>
  /** Does it, and says in a word what was answered. */
  readonly act: (storage: PostgresStorage, scene: Scene) => Promise<string>
  /** With nobody else there: what it says, and the state in which the job is then. */
  readonly alone: Outcome
}

/** What the second one said, and the one place in which the job is in the end; `gone` for none. */
export type Outcome = readonly [said: string, state: string]

export interface Meeting {
  readonly first: string
  readonly second: string
  /** Whether the second one waits for the first, or passes by what that one holds. */
  readonly meets: 'waits' | 'passes'
  /** When the first one has committed. */
  readonly then: Outcome
  /** When the second one came while the first was under way; as `then`, unless it differs. */
  readonly held?: Outcome
  /** When it passed by, the first one committed, and it comes again: what it left for the next time. */
  readonly again?: Outcome
}

/** Meetings as the tables write them, a line each. */
export type Line = readonly [
  first: string,
  second: string,
  meets: Meeting['meets'],
  then: Outcome,
  more?: Pick<Meeting, 'held' | 'again'>,
]

export function meetings(lines: readonly Line[]): Meeting[] {
  return lines.map(([first, second, meets, then, more]) => ({ first, second, meets, then, ...more }))
}

/** The name of the test of a meeting, which docs/races.md gives too. */
export function nameOf(place: string, { first, second }: Meeting): string {
  return `${place}: ${first} first, ${second} second`
}

/** What is played: how the job comes to the place, and who meets there. */
export interface Stage {
  readonly place: string
  readonly scene: () => Promise<Scene>
  readonly actors: readonly Actor[]
}

export async function play(stage: Stage, meeting: Meeting): Promise<void> {
  const first = actor(stage, meeting.first)
  const second = actor(stage, meeting.second)
  await oneAfterTheOther(await prepared(stage, first, second), first, second, meeting)
  await heldThenCommitted(await prepared(stage, first, second), first, second, meeting)
  await heldThenRolledBack(await prepared(stage, first, second), first, second, meeting)
}

async function prepared(stage: Stage, first: Actor, second: Actor): Promise<Scene> {
  const scene = await stage.scene()
  await first.before?.(scene)
  if (second.before !== first.before) await second.before?.(scene)
  return scene
}

function actor({ actors, place }: Stage, operation: string): Actor {
  const found = actors.find((one) => one.operation === operation)
  assert(found, `nobody at ${place} is called "${operation}"`)
  return found
}

async function oneAfterTheOther(scene: Scene, first: Actor, second: Actor, { then }: Meeting): Promise<void> {
  assert.equal(await first.act(scene.storage, scene), first.alone[0], `${first.operation}, with nobody there`)
  const said = await second.act(scene.storage, scene)
  assert.deepEqual([said, await scene.state()], then, 'one after the other')
}

async function heldThenCommitted(scene: Scene, first: Actor, second: Actor, meeting: Meeting): Promise<void> {
  const holding = await stopped(scene.store, first.point, (storage) => first.act(storage, scene))
  const answer = second.act(scene.storage, scene)
  if (meeting.meets === 'waits') await holding.waitedFor()
  else await answer
  assert.equal(await holding.goOn(), first.alone[0], `${first.operation}, held`)
  assert.deepEqual([await answer, await scene.state()], meeting.held ?? meeting.then, 'held, then committed')
  if (meeting.again === undefined) return
  assert.deepEqual([await second.act(scene.storage, scene), await scene.state()], meeting.again, 'and again')
}

async function heldThenRolledBack(scene: Scene, first: Actor, second: Actor, meeting: Meeting): Promise<void> {
  const holding = await stopped(scene.store, first.point, (storage) => first.act(storage, scene))
  const answer = second.act(scene.storage, scene)
  if (meeting.meets === 'waits') await holding.waitedFor()
  else await answer
  await holding.fail()
  await assert.rejects(holding.answer, `${first.operation} was to fail`)
  // Who passed by comes again.
  const said = meeting.meets === 'waits' ? await answer : await second.act(scene.storage, scene)
  assert.deepEqual([said, await scene.state()], second.alone, 'held, then rolled back')
}
