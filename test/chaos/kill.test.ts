/** Kills for half a minute: real processes on a real server, and nothing is lost, settled twice or blamed. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { serverUrl } from '../support/postgres.js'
import { assertLine, assertSorts, BACKLOG, chaos, lastLine } from './form-run.js'

let dir: string
let keep: string
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'leasehold-chaos-test-'))
  keep = join(dir, 'kept')
})
after(async () => {
  const { schema } = JSON.parse(readFileSync(join(keep, 'run.json'), 'utf8')) as { schema: string }
  const client = new pg.Client(serverUrl())
  await client.connect()
  await client.query(`drop schema if exists "${schema}" cascade`)
  await client.end()
  rmSync(dir, { recursive: true, force: true })
})

test('30 s of kills: nothing is lost, settled twice or doubled, and nobody is quarantined', async () => {
  const args = ['--seconds', '30', '--backlog', String(BACKLOG), '--url', serverUrl(), '--keep', keep, '--json']
  const { code, stdout, stderr } = await chaos('kill', ...args)
  assert.equal(code, 0, stderr)
  assertLine('kill', lastLine(stdout), stderr)
  assertSorts(keep, stderr)
})

test('what was kept is judged again and comes to the same; spoiled, it is told and the exit code says so', async () => {
  const first = await chaos('--recount', keep, '--json')
  assert.equal(first.code, 0, first.stderr)
  assert.equal(lastLine(first.stdout).lost, 0)
  const records = readFileSync(join(keep, 'store.jsonl'), 'utf8')
  writeFileSync(join(keep, 'store.jsonl'), records.slice(records.indexOf('\n') + 1))
  const second = await chaos('--recount', keep, '--json')
  assert.equal(second.code, 4, second.stderr)
  assert.equal(lastLine(second.stdout).lost, 1)
})

for (const [args, message] of [
  [[], 'which form?'],
  [['kil'], 'there is no form "kil"'],
  [['restart', '--url', 'postgres://localhost/x'], '--url: restart spoils the server itself'],
  [['readonly', '--url', 'postgres://localhost/x'], '--url: readonly spoils the server itself'],
  [['all', '--url', 'postgres://localhost/x'], '--url: all spoils the server itself'],
  [['kill', '--seconds', 'soon'], '--seconds takes a whole number'],
  [['kill', '--secs', '3'], "Unknown option '--secs'"],
] as const)
  test(`refused at once: chaos ${args.join(' ')}`, async () => {
    const { code, stdout, stderr } = await chaos(...args)
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.ok(stderr.includes(message), stderr)
  })

test('a folder that is not empty is refused, and nothing in it is touched', async () => {
  assert.ok(existsSync(join(keep, 'run.json')))
  const before = readFileSync(join(keep, 'run.json'), 'utf8')
  const { code, stderr } = await chaos('kill', '--seconds', '1', '--keep', keep)
  assert.equal(code, 2, stderr)
  assert.match(stderr, /is not empty/)
  assert.equal(readFileSync(join(keep, 'run.json'), 'utf8'), before)
})
