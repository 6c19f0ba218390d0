/**
 * CPU time of the server, from /proc: the postmaster, its processes, and those of them that have ended. Null where
 * /proc is missing or the server runs elsewhere. Called by cost.ts.
 */
import { readdir, readFile } from 'node:fs/promises'

/** Linux counts CPU time for user space in hundredths of a second, whatever its timer does. */
const TICK_US = 10_000

export interface ProcessStat {
  command: string
  parent: number
  /** Its own time, and that of its ended children that it has waited for. */
  ticks: number
}

/** A line of /proc/<pid>/stat. The command stands in parentheses and may hold spaces and parentheses itself. */
export function parseStat(line: string): ProcessStat {
  const end = line.lastIndexOf(')')
  const fields = line.slice(end + 2).split(' ')
  const number = (index: number): number => Number(fields[index])
  return {
    command: line.slice(line.indexOf('(') + 1, end),
    parent: number(1),
    ticks: number(11) + number(12) + number(13) + number(14),
  }
}

async function statOf(pid: number): Promise<ProcessStat | undefined> {
  try {
    return parseStat(await readFile(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // It has ended, or this is no Linux.
    return undefined
  }
}

/** The postmaster of a backend, if that runs on this machine; a process that is not postgres only has the same number. */
export async function postmasterOf(backendPid: number): Promise<number | null> {
  const backend = await statOf(backendPid)
  if (backend?.command !== 'postgres') return null
  const parent = await statOf(backend.parent)
  return parent?.command === 'postgres' ? backend.parent : null
}

/** Microseconds of CPU that the server has used since it was started. */
export async function serverCpuUs(postmaster: number): Promise<number | null> {
  const own = await statOf(postmaster)
  if (own === undefined) return null
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const all = await Promise.all(pids.map(statOf))
  const children = all.filter((stat) => stat?.parent === postmaster)
  return children.reduce((sum, stat) => sum + stat!.ticks, own.ticks) * TICK_US
}
