/**
 * The sessions of one worker that share a process, one for each store. A suspect of one has to be alone in all of them:
 * whatever they hold when it kills the process would come under suspicion, and it would not be known to have been alone.
 * Made by worker.ts, asked by fetchers.
 */
import { assert } from '../core/errors.js'

/** A session, as far as the others are concerned. */
export interface Companion {
  /** It holds nothing, runs nothing, and no claim of it may still bring something. */
  readonly rests: boolean
  /** Code of an ended attempt goes on there, and nothing else does. */
  readonly hangs: boolean
  /** Gives back what waits there. */
  withdraw(): void
  /** Goes on with what it may do now. */
  pump(): void
}

export class Company {
  private readonly companions = new Set<Companion>()
  private alone: Companion | undefined

  join(one: Companion): void {
    this.companions.add(one)
  }

  leave(one: Companion): void {
    this.companions.delete(one)
    this.release(one)
  }

  /** The others start and claim nothing until `release`. Not while another one is alone. */
  enter(one: Companion): void {
    assert(!this.isClosedTo(one), 'one session at a time is alone in its process')
    this.alone = one
    for (const other of this.besides(one)) other.withdraw()
  }

  release(one: Companion): void {
    if (this.alone !== one) return
    this.alone = undefined
    for (const other of this.besides(one)) other.pump()
  }

  /** Another one is alone, or will be when the rest has ended. */
  isClosedTo(one: Companion): boolean {
    return this.alone !== undefined && this.alone !== one
  }

  restsBeside(one: Companion): boolean {
    return this.besides(one).every(({ rests }) => rests)
  }

  hangsBeside(one: Companion): boolean {
    return this.besides(one).some(({ hangs }) => hangs)
  }

  /** Something ended there; it may be what the one that wants to be alone waits for. */
  stirred(one: Companion): void {
    if (this.isClosedTo(one)) this.alone!.pump()
  }

  private besides(one: Companion): Companion[] {
    return [...this.companions].filter((other) => other !== one)
  }
}
