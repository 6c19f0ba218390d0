/** However `leasehold verify` ends, nothing of it is left. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { start } from '../cli/command.js'
import { schemasOf } from '../cli/verify-run.js'
import { serverUrl } from '../support/postgres.js'

// The schema of everyday work, which a variable names, is none of its business.
const env = { LEASEHOLD_URL: serverUrl(), LEASEHOLD_SCHEMA: 'pg_catalog' }

for (const [where, seen, signal, exit] of [
  ['the suite', /\d+ of \d+ cases judged/, 'SIGINT', 130],
  ['a drill', /kill +a worker was killed/, 'SIGTERM', 143],
] as const)
  test(`${signal} in the middle of ${where}: schemas and processes go all the same`, async () => {
    const verify = start(['verify', '--quick'], { env })
    await verify.wrote(seen)
    const { pid } = verify.child
    assert.notDeepEqual(await schemasOf(serverUrl(), pid), [])
    verify.child.kill(signal)
    // It ends only when its processes have.
    const { code, stdout, stderr } = await verify.ended
    assert.deepEqual([code, stdout], [exit, ''], stderr)
    assert.match(stderr, /stopped by (Ctrl-C|SIGTERM): nothing is verified, and what was made is gone/)
    assert.deepEqual(await schemasOf(serverUrl(), pid), [])
  })
