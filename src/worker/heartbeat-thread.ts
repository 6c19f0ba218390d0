/**
 * The thread that beats: it goes on while the main loop is busy, and says so to the store. Started by
 * thread-beats.ts as the entry of a worker thread; it does something when loaded, as an entry has to.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { realEnv } from '../core/env.js'
import { describeFailure } from '../core/failure.js'
import type { Beat, BeatAnswer } from '../storage/storage.js'
import { BeatLoop, type Resume, type Snapshot, type Told } from './beat-loop.js'

export interface ThreadData {
  module: string
  data: unknown
  beatMs: number
  resume: Resume | undefined
}

/** From the main loop. */
export type ToThread = { type: 'snapshot'; snapshot: Snapshot } | { type: 'now' } | { type: 'stop' }
/** To the main loop. */
export type ToMain = { type: 'ask' } | { type: 'told'; told: Told }

interface OpenBeats {
  openBeats(data: unknown, options: { timeoutMs: number }): Promise<BeatSender> | BeatSender
}

interface BeatSender {
  beat(beat: Beat): Promise<BeatAnswer>
  close(): Promise<void>
}

/** A main loop that has not answered in this part of an interval is late: the beat goes with what it said last. */
const ANSWER_PART = 1 / 4
const ANSWER_MS_MAX = 1_000
/** Shorter intervals than this leave a beat more time than one: a store under load is no dead connection. */
const TIMEOUT_MS_MIN = 250

if (parentPort && workerData) void beatFor(parentPort, workerData as ThreadData)

async function beatFor(port: NonNullable<typeof parentPort>, start: ThreadData): Promise<void> {
  const tell = (told: Told): void => port.postMessage({ type: 'told', told: plain(told) } satisfies ToMain)
  const sender = await open(start, tell)
  const main = new MainLoop((message) => port.postMessage(message), Math.min(ANSWER_MS_MAX, start.beatMs * ANSWER_PART))
  const loop = new BeatLoop({
    env: realEnv,
    beatMs: start.beatMs,
    snapshot: () => main.snapshot(),
    send: (beat) => sender.beat(beat),
    tell,
    ...(start.resume ? { resume: start.resume } : {}),
  })
  port.on('message', (message: ToThread) => {
    if (message.type === 'snapshot') main.answered(message.snapshot)
    else if (message.type === 'now') loop.now()
    else {
      loop.stop()
      void sender.close().finally(() => port.close())
    }
  })
  loop.now()
}

/** A store that is away now may be there at the next beat; a module that cannot be loaded ends the thread. */
async function open(start: ThreadData, tell: (told: Told) => void): Promise<BeatSender> {
  const { openBeats } = (await import(start.module)) as OpenBeats
  for (;;) {
    try {
      return await openBeats(start.data, { timeoutMs: Math.max(TIMEOUT_MS_MIN, start.beatMs) })
    } catch (error) {
      tell({ type: 'failed', error })
      await realEnv.sleep(start.beatMs / 2)
    }
  }
}

/** Errors of drivers cannot always be cloned. */
function plain(told: Told): Told {
  return told.type === 'failed' ? { type: 'failed', error: describeFailure(told.error) } : told
}

/** The main loop as the thread sees it: asked before each beat, silent when it is blocked. */
class MainLoop {
  private newest: { snapshot: Snapshot; at: number } | undefined
  private wake: () => void = () => {}

  constructor(
    private readonly post: (message: ToMain) => void,
    private readonly answerMs: number,
  ) {}

  answered(snapshot: Snapshot): void {
    this.newest = { snapshot, at: realEnv.monotonic() }
    this.wake()
  }

  async snapshot(): Promise<{ snapshot: Snapshot; mainLagMs: number } | null> {
    await new Promise<void>((resolve) => {
      const late = realEnv.timer(this.answerMs, resolve)
      this.wake = () => {
        late.cancel()
        resolve()
      }
      this.post({ type: 'ask' })
    })
    if (!this.newest) return null
    return { snapshot: this.newest.snapshot, mainLagMs: realEnv.monotonic() - this.newest.at }
  }
}
