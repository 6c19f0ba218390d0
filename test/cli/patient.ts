/** One check of the doctor, on a store as it is. Used by the tests of the doctor. */
import { CHECKS } from '../../src/cli/doctor/checks.js'
import type { Finding } from '../../src/cli/doctor/finding.js'
import { Site } from '../../src/cli/doctor/site.js'
import { connect, type Queue } from '../../src/index.js'

/** Looked at anew. */
export function examine(queue: Queue, name: string): Promise<Finding> {
  const check = CHECKS.find((one) => one.name === name)
  if (check === undefined) throw new Error(`there is no check "${name}"`)
  return check.find(new Site(queue, 'test'))
}

/** Settings of the session, as the role or the database may have them. */
export function withSettings(url: string, settings: Record<string, string>): string {
  const words = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  const changed = new URL(url)
  changed.searchParams.set('options', words.join(' '))
  return changed.href
}

export async function withQueue<T>(url: string, schema: string, work: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await connect(url, { schema, migrate: false })
  try {
    return await work(queue)
  } finally {
    await queue.close()
  }
}
