/** `leasehold dev`: a server that others can use by its directory, until it is stopped. */
import assert from 'node:assert/strict'
import { chmod, readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { parsed, run, scratchFolder, start } from './command.js'

test('dev tells its URL, serves embedded: URLs, and stops in order', async (t) => {
  const cwd = await scratchFolder(t)
  await chmod(cwd, 0o755)
  const dev = start(['dev', '--json'], { cwd })
  await dev.wrote(/\n/)
  const { url, dir } = parsed<{ url: string; dir: string }>(dev.stdout())
  assert.match(url, /^postgres:\/\//)
  assert.match(dir, /data$/)
  const env = { LEASEHOLD_URL: 'embedded:./data' }
  const { code } = await run(['enqueue', 'hello', '1'], { cwd, env })
  assert.equal(code, 0)
  const list = await run(['jobs', 'list', '--json', '--url', url], { cwd })
  assert.equal(parsed<{ jobs: unknown[] }>(list.stdout).jobs.length, 1)
  dev.child.kill('SIGINT')
  assert.equal((await dev.ended).code, 0)
  const gone = await run(['jobs', 'list', '--url', url], { cwd })
  assert.equal(gone.code, 1)
  const kept = await run(['jobs', 'list', '--json'], { cwd, env })
  assert.equal(parsed<{ jobs: unknown[] }>(kept.stdout).jobs.length, 1)
})

test('people get words to copy', async (t) => {
  const cwd = await scratchFolder(t)
  await chmod(cwd, 0o755)
  const dev = start(['dev', '--dir', './store'], { cwd })
  await dev.wrote(/Ctrl-C/)
  assert.match(dev.stdout(), /^PostgreSQL \d+\S* started/)
  assert.match(dev.stdout(), /connect\('embedded:\.\/store'\)/)
  dev.child.kill('SIGTERM')
  const { code, stderr } = await dev.ended
  assert.equal(code, 0)
  assert.match(stderr, /stopped; its files stay in \.\/store/)
})

test('what only looks or steers makes no store where a path was mistyped, and says who makes one', async (t) => {
  const cwd = await scratchFolder(t)
  const env = { LEASEHOLD_URL: 'embedded:./dta' }
  for (const args of [
    ['stats'],
    ['tail', '--no-follow'],
    ['jobs', 'list'],
    ['dead', 'redrive', '--all', '--yes'],
    ['queues', 'purge', 'mail', '--yes'],
    ['workers'],
    ['doctor'],
    ['bench', 'enqueue', '--jobs', '10'],
    ['migrate', '--check'],
  ]) {
    const { code, stdout, stderr } = await run(args, { cwd, env })
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, /^error: there is no store in \.\/dta \(NO_STORE\)\nfix: .*leasehold dev --dir \.\/dta"/)
  }
  assert.deepEqual(await readdir(cwd), [])
})
