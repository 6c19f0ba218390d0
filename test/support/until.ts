/** Waits for what a test is about to look at; its bound is for a run that hangs, and decides nothing else. */
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE_MS = 90_000
const STEP_MS = 20

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${PATIENCE_MS} ms in vain: ${what}`)
    await sleep(STEP_MS)
  }
}
