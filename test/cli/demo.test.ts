/** The demo itself, smaller: real processes, a kill, a proof that others can recount, and no trace afterwards. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFile, chmod, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parsed, run, scratchFolder, start } from './command.js'

type Line = Record<string, number> & { holds: boolean }

/** Processes of a demo whose folder is there; the store's server among them. */
function processesIn(folder: string): string {
  return execFileSync('ps', ['-eo', 'args'])
    .toString()
    .split('\n')
    .filter((line) => line.includes(folder))
    .join('\n')
}

async function demoFolders(): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => name.startsWith('leasehold-demo-'))
}

test('400 deliveries: nothing lost, nothing doubled, a kill survived; a recount agrees and sees tampering', async (t) => {
  const dir = await scratchFolder(t)
  await chmod(dir, 0o755)
  const { code, stdout, stderr } = await run(['demo', '--jobs', '400', '--json', '--keep', join(dir, 'kept')])
  assert.equal(code, 0, stderr)
  const line = parsed<Line>(stdout)
  assert.deepEqual([line.enqueued, line.lost, line.doubled, line.kills, line.holds], [400, 0, 0, 1, true])
  assert.equal(line.completed! + line.dead!, 400)
  assert.ok(line.recoveryMs! > 3_000 && line.recoveryMs! < 30_000, `recovery ${line.recoveryMs}`)
  assert.match(stderr, /worker \d is killed \(SIGKILL\)/)
  assert.match(stderr, /worker \d has ended in order/)
  assert.equal(processesIn(dir), '')

  const recount = ['demo', '--recount', join(dir, 'kept')]
  const again = await run([...recount, '--json'])
  assert.equal(again.code, 0)
  assert.deepEqual(parsed(again.stdout), line)

  const log = join(dir, 'kept', 'receiver.jsonl')
  const requests = (await readFile(log, 'utf8')).split('\n')
  const applied = requests.find((text) => text.includes('"effect":"applied"'))!
  await appendFile(log, `${applied}\n`)
  const doubled = await run([...recount, '--json'])
  assert.equal(doubled.code, 4)
  assert.equal(parsed<Line>(doubled.stdout).doubled, 1)

  await writeFile(log, requests.filter((text) => text !== applied).join('\n'))
  const lost = await run(recount)
  assert.equal(lost.code, 4)
  assert.match(lost.stdout, /completed, and the receiver has no effect of it/)
  assert.match(lost.stdout, /NOT proven/)
})

test('ended in the middle it puts everything down', async () => {
  const before = await demoFolders()
  const demo = start(['demo', '--jobs', '2000'])
  await demo.wrote(/deliveries enqueued/)
  const [folder] = (await demoFolders()).filter((name) => !before.includes(name))
  assert.ok(folder)
  demo.child.kill('SIGINT')
  const { code, stdout, stderr } = await demo.ended
  assert.equal(code, 130)
  assert.equal(stdout, '')
  assert.match(stderr, /SIGINT: putting everything down/)
  assert.equal(processesIn(folder), '')
  assert.ok(!(await demoFolders()).includes(folder))
})

test('a folder that is not empty is not used, and one without a demo cannot be recounted', async (t) => {
  const dir = await scratchFolder(t)
  await writeFile(join(dir, 'mine'), '')
  const kept = await run(['demo', '--keep', dir])
  assert.equal(kept.code, 2)
  assert.match(kept.stderr, /is not empty/)
  assert.equal((await run(['demo', '--recount', dir])).code, 3)
  assert.deepEqual(await readdir(dir), ['mine'])
})
