/**
 * A history on disk: a file for each process, a line for each event, written before anything follows from it. Used by the
 * processes of chaos and of the drills, and by those who read what they write.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type HistoryEvent, lineOf, type Said } from './history.js'

export const LOG_SUFFIX = '.jsonl'
const CHUNK_BYTES = 1 << 18

/** Milliseconds of the machine's own clock, which its processes share and nobody sets. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

export function logPath(folder: string, process: string): string {
  return join(folder, `${process}${LOG_SUFFIX}`)
}

/** Written by synchronous appends: a process that is killed leaves in it whatever it had done. */
export class LogFile {
  private readonly file: number

  constructor(path: string) {
    this.file = openSync(path, 'a')
  }

  write(said: Said, at = sharedNow()): void {
    writeSync(this.file, asciiLine(said, at))
  }

  /** Many at one instant, in one write. */
  writeAll(all: readonly Said[]): void {
    const at = sharedNow()
    writeSync(this.file, all.map((said) => asciiLine(said, at)).join(''))
  }

  close(): void {
    closeSync(this.file)
  }
}

/** Other characters are written as JSON's escapes of them, so that no piece of a file ends within one. */
function asciiLine(said: Said, at: number): string {
  const line = lineOf({ at, ...said } as HistoryEvent)
  return line.replace(/[^\n -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whole lines of a file as it grows. A line that is not finished yet comes with the next call, or never. */
export class LogTail {
  private readonly buffer = Buffer.alloc(CHUNK_BYTES)
  private offset = 0
  private rest = ''

  constructor(private readonly path: string) {}

  *lines(): Generator<string, void> {
    // It may not be there yet.
    const file = openSync(this.path, 'a+')
    try {
      for (;;) {
        const bytes = readSync(file, this.buffer, 0, CHUNK_BYTES, this.offset)
        if (bytes === 0) return
        this.offset += bytes
        const lines = (this.rest + this.buffer.toString('latin1', 0, bytes)).split('\n')
        this.rest = lines.pop()!
        yield* lines
      }
    } finally {
      closeSync(file)
    }
  }
}
