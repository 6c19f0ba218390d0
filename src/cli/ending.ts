/**
 * The ways in which a command is asked to end: signals, and a reader of its output that went away. Called by commands
 * that hold something which has to be put down, and by main for those that do not.
 */
import { EXIT, type ExitCode } from './exit-codes.js'

export type EndingCause = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'reader gone'
/** Hears the cause, and how many signals came before. */
export type EndingListener = (cause: EndingCause, before: number) => void

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

let readerGone: (() => void) | undefined

/** From now on signals end nothing by themselves; `heard` has to. Returns the function that gives that back. */
export function onEnding(heard: EndingListener): () => void {
  let before = 0
  const listeners = SIGNALS.map((signal) => {
    const listener = (): void => heard(signal, before++)
    process.on(signal, listener)
    return () => void process.off(signal, listener)
  })
  let left = false
  readerGone = () => {
    // Each further line would say it again; it is one wish, and no signal that makes the next one a second.
    if (!left) heard('reader gone', 0)
    left = true
  }
  return () => {
    for (const stop of listeners) stop()
    readerGone = undefined
  }
}

export function exitCodeOf(cause: EndingCause): ExitCode {
  if (cause === 'SIGINT') return EXIT.interrupted
  return cause === 'reader gone' ? EXIT.ok : EXIT.terminated
}

/** Runs `work` with a signal that fires when the command is asked to end; the second signal ends it at once. */
export async function untilAsked<T>(work: (asked: AbortSignal) => Promise<T>): Promise<T> {
  const asked = new AbortController()
  const stopHearing = onEnding((cause, before) => {
    if (before > 0) process.exit(exitCodeOf(cause))
    asked.abort(cause)
  })
  try {
    return await work(asked.signal)
  } finally {
    stopHearing()
  }
}

/** Why the signal of `untilAsked` fired; undefined when it has not. */
export function causeOf(asked: AbortSignal): EndingCause | undefined {
  return asked.aborted ? (asked.reason as EndingCause) : undefined
}

/** As people know it. */
export function causeText(cause: EndingCause): string {
  return cause === 'SIGINT' ? 'Ctrl-C' : cause
}

/** `leasehold jobs list | head -1`: the reader has seen enough, which is no failure and no reason for a word. */
export function watchReader(host: NodeJS.Process = process): void {
  for (const stream of [host.stdout, host.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      if (readerGone === undefined) host.exit(host.exitCode ?? EXIT.ok)
      readerGone()
    })
}
