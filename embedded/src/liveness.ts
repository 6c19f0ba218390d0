// Job: tells whether a process that wrote its record to a file is still alive, safe against reused process ids.
// Called by: the lock, the registered users and the watchdog.
import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { isSystemError } from './error.js'

/** Identifies one run of one process. */
export interface ProcessRecord {
  pid: number
  /** When it started, in the words of the operating system; empty where that cannot be told. */
  started: string
  /** Machine, boot and container: process ids of two of these must not be compared. */
  host: string
}

export type Liveness = 'alive' | 'dead' | 'elsewhere'

/** The record of a process that runs now. */
export function recordOf(pid: number): ProcessRecord {
  const started = startOf(pid)
  return { pid, started: started === 'zombie' ? '' : started, host: thisHost() }
}

export function liveness(record: ProcessRecord): Liveness {
  if (record.host !== thisHost()) return 'elsewhere'
  if (!isThere(record.pid)) return 'dead'
  const started = startOf(record.pid)
  if (started === 'zombie') return 'dead'
  // A start time that is hidden from us proves nothing: better a server that lives too long than one cut off.
  return started === '' || record.started === '' || started === record.started ? 'alive' : 'dead'
}

/** Reads a record; undefined when the text is not one, for instance in a file that its writer did not finish. */
export function parseRecord(text: string): ProcessRecord | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** True when a process has this id, whoever owns it. */
export function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return isSystemError(error, 'EPERM')
  }
}

function isRecord(value: unknown): value is ProcessRecord {
  if (typeof value !== 'object' || value === null) return false
  const record = value as Partial<Record<keyof ProcessRecord, unknown>>
  return (
    Number.isSafeInteger(record.pid) &&
    Number(record.pid) > 0 &&
    typeof record.started === 'string' &&
    typeof record.host === 'string'
  )
}

function thisHost(): string {
  if (process.platform !== 'linux') return hostname()
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
}

function startOf(pid: number): string {
  if (process.platform === 'linux') return startFromProc(pid)
  return process.platform === 'win32' ? '' : startFromPs(pid)
}

function startFromProc(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name stands in brackets and may hold anything, so count from the last one: state, then the rest.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'zombie' : (fields[19] ?? '')
  } catch {
    return '' // gone since, or hidden by the hidepid mount option
  }
}

function startFromPs(pid: number): string {
  try {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { env, encoding: 'utf8' }).trim()
    return line.startsWith('Z') ? 'zombie' : line.replace(/^\S+\s+/, '')
  } catch {
    return ''
  }
}
