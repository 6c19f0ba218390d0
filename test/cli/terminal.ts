/** A command in a real terminal: of some width, with keys that are pressed. Made by `script` of util-linux. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { MAIN } from './command.js'

/** Where there is no `script` of util-linux the tests of the terminal are left out, and say so. */
export const needsTerminal = {
  skip: /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')
    ? false
    : 'needs script of util-linux',
}

export interface Session {
  child: ChildProcess
  /** All that was written to the terminal, control characters included. */
  written(): string
  wrote(pattern: RegExp): Promise<void>
  press(keys: string): void
  ended: Promise<number | null>
}

export const CTRL_C = '\u0003'
export const CTRL_D = '\u0004'

export function terminal(args: readonly string[], options: { columns: number; env: Record<string, string> }): Session {
  const words = [process.execPath, MAIN, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`)
  const command = `stty cols ${options.columns} rows 30; exec ${words.join(' ')}`
  const { NO_COLOR: _, ...environment } = process.env
  // Its own group, so that keys reach the command and nobody else.
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { ...environment, TERM: 'xterm-256color', ...options.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  let wake: () => void = () => {}
  child.stdout!.on('data', (chunk) => {
    text += String(chunk)
    wake()
  })
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', (code) => {
      resolve(code)
      wake()
    })
  })
  const wrote = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(text)) {
      if (child.exitCode !== null) throw new Error(`it ended and never wrote ${pattern}: ${JSON.stringify(text)}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { child, wrote, ended, written: () => text, press: (keys) => void child.stdin!.write(keys) }
}

/** The lines that stay on the screen, without colours: what was wiped out is gone. */
export function screenOf(text: string): string[] {
  const lines: string[] = ['']
  let at = 0
  for (const part of text.split(/(\u001b\[[0-9;?]*[A-Za-z]|\r|\n)/)) {
    const up = /^\u001b\[(\d*)A$/.exec(part)
    if (up) at = Math.max(0, at - Number(up[1] || 1))
    else if (part === '\u001b[2K') lines[at] = ''
    else if (part === '\n') lines[++at] ??= ''
    else if (!part.startsWith('\u001b') && part !== '\r') lines[at] += part
  }
  return lines
}
