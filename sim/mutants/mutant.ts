/**
 * A way to break the store, the worker or the client, and the rule that has to notice. The mutants are in the files beside
 * this one; mutants.ts runs them. That each rule can fail is shown by a history of its own, in test/testing/checker.
 */
import type { Spoil } from '../../src/testing/simulator/index.js'

export interface Mutant {
  /** What is wrong with it. */
  name: string
  /** The rule that has to be broken by it. */
  caughtBy: string
  spoil: Spoil
}

/** Puts another method in the place of one, for objects and for prototypes of classes; what it returns takes that back. */
export function replaced<Target extends object, Name extends keyof Target>(
  target: Target,
  name: Name,
  make: (was: Target[Name]) => Target[Name],
): () => void {
  const own = Object.getOwnPropertyDescriptor(target, name)
  const was = target[name]
  Object.defineProperty(target, name, { value: make(was), configurable: true, writable: true })
  return () => {
    if (own === undefined) Reflect.deleteProperty(target, name)
    else Object.defineProperty(target, name, own)
  }
}

/** Every so many-th time, beginning with that one: true. */
export function eachTime(nth: number): () => boolean {
  let count = 0
  return () => ++count % nth === 0
}
