/**
 * Gives its process a clock that is off by what a file says, and jumps when the file changes. Loaded before all else, in
 * each thread, where the driver asks for it; only `Date` is spoiled, as a machine with a wrong clock does it: what
 * counts time that passes stays right.
 */
import { openSync, readSync } from 'node:fs'
import { childSettings } from '../src/cli/demo/child.js'

/** The file is asked at most this often. */
const LOOK_NS = 5_000_000n

const { clock } = childSettings<{ clock?: string }>()
if (clock !== undefined) spoil(clock)

function spoil(path: string): void {
  const Right = Date
  const offsetMs = offsetIn(path)
  const now = (): number => Right.now() + offsetMs()
  globalThis.Date = new Proxy(Right, {
    construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made) as object,
    apply: () => new Right(now()).toString(),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}

function offsetIn(path: string): () => number {
  const file = openSync(path, 'r')
  const bytes = Buffer.alloc(8)
  let readAt = -LOOK_NS
  return () => {
    const at = process.hrtime.bigint()
    if (at - readAt >= LOOK_NS && readSync(file, bytes, 0, 8, 0) === 8) readAt = at
    return bytes.readDoubleLE()
  }
}
