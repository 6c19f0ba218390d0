/** The programs in examples/ run as they are, from the built package, and say what they promise. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { ROOT } from '../support/source.js'

const EXAMPLES = join(ROOT, 'examples')
const database = `examples_${process.pid}`

/** What each of them writes, line by line. */
const LINES: Record<string, readonly string[]> = {
  'enqueue-in-transaction.mjs': [
    'order A-2: the card was refused, rolled back',
    'order A-1: confirmed, its row is there',
    '1 job ran',
  ],
  'come-back-later.mjs': [
    'look 1 at pi_1: pending (attempt 1)',
    'look 2 at pi_1: pending (attempt 1)',
    'look 3 at pi_1: paid (attempt 1)',
    'the service answered at attempt 2',
    'paid: true',
    'JOB_ENDED_BADLY, as nobody is no address',
  ],
  'run-until-empty.mjs': ['100 done, 0 failed'],
  'effects-once.mjs': [
    'enqueued twice, one job; duplicate: true',
    'attempt 1: charged',
    'attempt 2: was charged before',
    'charges: 1',
  ],
}

async function admin(text: string): Promise<void> {
  const client = new pg.Client(serverUrl())
  await client.connect()
  await client.query(text)
  await client.end()
}

before(() => admin(`create database ${database}`))
after(() => admin(`drop database ${database} with (force)`))

function databaseUrl(): string {
  const url = new URL(serverUrl())
  url.pathname = `/${database}`
  return url.href
}

test('every example is tested', () => {
  const programs = readdirSync(EXAMPLES).filter((name) => name.endsWith('.mjs') && name !== 'store.mjs')
  assert.deepEqual(programs.sort(), Object.keys(LINES).sort())
})

for (const [name, lines] of Object.entries(LINES))
  test(`examples/${name}`, async () => {
    const child = spawn(process.execPath, [join(EXAMPLES, name)], {
      env: { ...process.env, LEASEHOLD_URL: databaseUrl() },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 0, output)
    // Jobs of different kinds run at once: what they say is compared in no order.
    assert.deepEqual(output.trimEnd().split('\n').sort(), [...lines].sort())
  })
