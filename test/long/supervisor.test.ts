/** `leasehold work --min --max`: real processes, scaled, killed, drained; no job is lost and none costs an attempt. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { type CliStore, cliStore, handlerModule, type Running, run, scratchFolder, start } from '../cli/command.js'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'

interface Line {
  event: string
  level: string
  place?: number
  pid?: number
  code?: number | null
  signal?: string
  from?: number
  to?: number
  why?: string
  endsInARow?: number
  restartInMs?: number
  error?: { code: string }
}

let store: CliStore

before(async () => {
  store = await cliStore('supervisor')
})
after(() => store.drop())

/** A supervisor of jobs that begin, say so, and end when the test lets them. */
class Site {
  readonly stages: Running[] = []

  constructor(
    readonly name: string,
    readonly dir: string,
    readonly module: string,
  ) {}

  static async of(t: TestContext, name: string, text = ''): Promise<Site> {
    const dir = await scratchFolder(t)
    const gated = `import { existsSync, writeFileSync } from 'node:fs'
      ${text}
      export const gated = defineJob('${name}', { queue: '${name}' }).handle(async (n, { signal }) => {
        writeFileSync('${dir}/began-' + n, String(process.pid))
        const isOpen = () => existsSync('${dir}/open') || existsSync('${dir}/open-' + n)
        while (!isOpen() && !signal.aborted) await new Promise((done) => setTimeout(done, 10))
        signal.throwIfAborted()
      })`
    const site = new Site(name, dir, await handlerModule(dir, gated.replaceAll('`', '')))
    t.after(() => {
      for (const { child } of site.stages) child.kill('SIGKILL')
    })
    return site
  }

  supervise(...args: string[]): Running {
    return this.superviseOn(store.env.LEASEHOLD_URL!, ...args)
  }

  superviseOn(url: string, ...args: string[]): Running {
    const running = start(['work', this.module, ...args], { env: { ...store.env, LEASEHOLD_URL: url } })
    this.stages.push(running)
    return running
  }

  async enqueue(count: number): Promise<void> {
    const input = Array.from({ length: count }, (_, n) => String(n)).join('\n')
    const { code, stderr } = await run(['enqueue', this.name, '--stdin-lines', '--queue', this.name], {
      env: store.env,
      input,
    })
    assert.equal(code, 0, stderr)
  }

  /** By job, the process that runs it. */
  began(): Map<string, number> {
    const files = readdirSync(this.dir).filter((file) => file.startsWith('began-'))
    const pids = files.map((file) => [file.slice('began-'.length), Number(readFileSync(join(this.dir, file), 'utf8'))])
    return new Map(pids as [string, number][])
  }

  /** All jobs may end, or this one. */
  open(job?: string): void {
    writeFileSync(join(this.dir, job === undefined ? 'open' : `open-${job}`), '')
  }

  async jobs(): Promise<{ state: string; attempts: { used: number }; payload: number }[]> {
    return (
      await store.json<{ jobs: { state: string; attempts: { used: number }; payload: number }[] }>(
        'jobs',
        'list',
        '--queue',
        this.name,
        '--limit',
        '100',
      )
    ).jobs
  }

  /** Each has completed at its first attempt. */
  async allDone(count: number): Promise<void> {
    const jobs = await this.jobs()
    assert.deepEqual(
      [jobs.length, new Set(jobs.map(({ state, attempts }) => `${state} ${attempts.used}`))],
      [count, new Set(['completed 1'])],
    )
  }
}

function lines({ stdout }: Pick<Running, 'stdout'>, event?: string): Line[] {
  const whole = stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
  return event === undefined ? whole : whole.filter((line) => line.event === event)
}

async function said(running: Running, event: string, holds: (line: Line) => boolean = () => true): Promise<Line> {
  const found = (): Line | undefined => lines(running, event).find(holds)
  await until(`${event}: ${running.stderr()}`, () => {
    if (running.child.exitCode !== null && found() === undefined) throw new Error(`ended: ${running.stderr()}`)
    return found() !== undefined
  })
  return found()!
}

const FAST = ['--every', '100ms', '--cool-down', '500ms']

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('W6: a backlog brings processes, an empty queue takes them away, and what one of them still runs is finished', async (t) => {
  const site = await Site.of(t, 'tide')
  await site.enqueue(30)
  const running = site.supervise('--max', '2', '--concurrency', '5', '--target', '1', '--name', 'box', ...FAST)
  const up = await said(running, 'supervisor.scaled', ({ to }) => to === 2)
  assert.match(up.why!, /^\d+ due jobs, where 1 a slot may wait$/)
  const second = await said(running, 'supervisor.process up', ({ place }) => place === 2)
  await until('the second runs jobs', () => [...site.began().values()].includes(second.pid!))
  const names = (await store.json<{ workers: { name: string }[] }>('workers')).workers.map(({ name }) => name)
  assert.deepEqual(names.sort(), ['box/1', 'box/2'])
  const [kept] = [...site.began()].find(([, pid]) => pid === second.pid)!
  for (let n = 0; n < 30; n++) if (String(n) !== kept) site.open(String(n))
  const down = await said(running, 'supervisor.scaled', ({ to }) => to === 1)
  assert.deepEqual([down.from, /^fewer have been enough for/.test(down.why!)], [2, true], down.why)
  await said(running, 'worker.draining')
  assert.deepEqual((await site.jobs()).filter(({ state }) => state !== 'completed').length, 1, 'it is not given back')
  site.open(kept)
  const ended = await said(running, 'supervisor.process ended')
  assert.deepEqual([ended.place, ended.pid, ended.code], [2, second.pid, 0])
  await site.allDone(30)
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
  assert.deepEqual(
    lines(running, 'supervisor.scaled').map(({ from, to }) => [from, to]),
    [
      [1, 2],
      [2, 1],
    ],
  )
})

test('W6: by wait, jobs that wait for longer than the target bring processes', async (t) => {
  const site = await Site.of(t, 'queueing')
  await site.enqueue(6)
  const by = ['--scale-by', 'wait', '--target', '50ms', '--concurrency', '1']
  const running = site.supervise('--max', '2', ...by, ...FAST)
  const up = await said(running, 'supervisor.scaled')
  assert.deepEqual([up.to, /^jobs wait for .+, where 50ms is the target$/.test(up.why!)], [2, true], up.why)
  site.open()
  await until('all are done', async () => (await site.jobs()).every(({ state }) => state === 'completed'))
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
  await site.allDone(6)
})

test('W6: a process that is killed is started again, and the job that it held runs elsewhere', async (t) => {
  const site = await Site.of(t, 'killed')
  const running = site.supervise('--min', '2', '--max', '2', '--concurrency', '1')
  for (const place of [1, 2]) await said(running, 'supervisor.process up', (line) => line.place === place)
  await site.enqueue(2)
  await until('both run', () => site.began().size === 2)
  const [job, pid] = [...site.began()][0]!
  process.kill(pid, 'SIGKILL')
  const died = await said(running, 'supervisor.process died')
  assert.deepEqual([died.pid, died.signal, died.level, died.endsInARow], [pid, 'SIGKILL', 'warn', 1])
  const again = await said(running, 'supervisor.process up', (line) => line.place === died.place && line.pid !== pid)
  await until('its job runs again', () => site.began().get(job) !== pid)
  assert.notEqual(site.began().get(job), pid)
  site.open()
  await until('all are done', async () => (await site.jobs()).every(({ state }) => state === 'completed'))
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
  assert.equal(lives(again.pid!), false)
})

test('W4: SIGTERM lets all processes finish what they run; a second one ends them at once, at no cost', async (t) => {
  const site = await Site.of(t, 'drained')
  const draining = site.supervise('--min', '2', '--max', '2', '--concurrency', '1')
  for (const place of [1, 2]) await said(draining, 'supervisor.process up', (line) => line.place === place)
  await site.enqueue(2)
  await until('both run', () => site.began().size === 2)
  draining.child.kill('SIGTERM')
  await until('both drain', () => lines(draining, 'worker.draining').length === 2)
  assert.match(draining.stderr(), /SIGTERM: draining/)
  site.open()
  const drained = await draining.ended
  assert.equal(drained.code, 0, drained.stderr)
  assert.deepEqual(lines(draining).at(-1)!.event, 'supervisor.stopped')
  await site.allDone(2)

  const hurried = await Site.of(t, 'hurried')
  await hurried.enqueue(1)
  const ending = hurried.supervise('--max', '2')
  await until('it runs', () => hurried.began().size === 1)
  ending.child.kill('SIGTERM')
  await said(ending, 'worker.draining')
  ending.child.kill('SIGTERM')
  assert.equal((await ending.ended).code, 143)
  assert.deepEqual(
    (await hurried.jobs()).map(({ state, attempts }) => [state, attempts.used]),
    [['ready', 0]],
  )
})

test('a process that somebody else ends drains and is replaced; a signal to the whole group is no second one', async (t) => {
  const site = await Site.of(t, 'grouped')
  await site.enqueue(1)
  const running = site.supervise('--max', '1')
  const { pid: first } = await said(running, 'supervisor.process up')
  await until('it runs', () => site.began().get('0') === first)
  process.kill(first!, 'SIGTERM')
  await said(running, 'worker.draining')
  site.open()
  const ended = await said(running, 'supervisor.process died')
  assert.deepEqual([ended.pid, ended.code], [first, 0])
  const { pid: second } = await said(running, 'supervisor.process up', ({ pid }) => pid !== first)
  rmSync(join(site.dir, 'open'))
  await site.enqueue(1)
  await until('the new one runs', () => site.began().get('0') === second)
  process.kill(second!, 'SIGTERM')
  running.child.kill('SIGTERM')
  await until('it drains', () => lines(running, 'worker.draining').length === 2)
  await until('the supervisor knows', () => /SIGTERM: draining/.test(running.stderr()))
  site.open()
  const { code, stderr } = await running.ended
  assert.deepEqual([code, /again/.test(stderr)], [0, false], stderr)
  await site.allDone(2)
})

test('a process that does not end in its grace is killed', async (t) => {
  const text = `\nconst deaf = defineJob('deaf', { queue: 'deaf' })
    export const loops = deaf.handle(() => { writeFileSync('DIR/began-loop', String(process.pid)); for (;;); })`
  const site = await Site.of(t, 'deaf-site')
  writeFileSync(site.module, readFileSync(site.module, 'utf8') + text.replace('DIR', site.dir))
  const running = site.supervise('--max', '1', '--grace', '1s')
  await store.run('enqueue', 'deaf', '--queue', 'deaf')
  await until('it runs', () => site.began().has('loop'))
  running.child.kill('SIGTERM')
  await until('it drains', () => /draining/.test(running.stderr()))
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 143)
  assert.equal(lines(running, 'supervisor.process killed').length, 1)
  assert.equal(lives(site.began().get('loop')!), false)
  await store.run('jobs', 'cancel', '--queue', 'deaf', '--state', 'running', '--yes')
})

test('a store that does not answer ends no process and starts none; a process that comes up meanwhile waits for it', async (t) => {
  const site = await Site.of(t, 'away')
  const proxy = await TcpProxy.to(store.env.LEASEHOLD_URL!)
  t.after(() => proxy.close())
  const running = site.superviseOn(proxy.url, '--max', '2', '--concurrency', '1', '--target', '1', ...FAST)
  const { pid } = await said(running, 'supervisor.process up')
  await proxy.refuse()
  await running.wrote(/the store does not answer, trying on: /)
  process.kill(pid!, 'SIGKILL')
  const died = await said(running, 'supervisor.process died', ({ error }) => error !== undefined)
  assert.equal(died.error!.code, 'STORE_UNAVAILABLE')
  assert.deepEqual(lines(running, 'supervisor.scaled'), [])
  await proxy.accept()
  await running.wrote(/the store answers again/)
  await said(running, 'supervisor.process up', (line) => line.pid !== pid)
  await site.enqueue(6)
  await said(running, 'supervisor.scaled', ({ to }) => to === 2)
  site.open()
  await until('all are done', async () => (await site.jobs()).every(({ state }) => state === 'completed'))
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
  await site.allDone(6)
})

test('a module that cannot be loaded ends the supervisor with the error and the exit code of work', async (t) => {
  const dir = await scratchFolder(t)
  const boom = await handlerModule(dir, `throw new Error('boom')`, 'boom.mjs')
  const failed = await run(['work', boom, '--min', '2', '--max', '4', '--json'], { env: store.env })
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /boom\.mjs could not be loaded: boom \(MODULE_FAILED\)/)
  const last = failed.stdout.trimEnd().split('\n').at(-1)!
  assert.equal((JSON.parse(last) as { error: { code: string } }).error.code, 'MODULE_FAILED')
  assert.doesNotMatch(failed.stdout, /process died/)
  const missing = await run(['work', join(dir, 'none.mjs'), '--max', '4'], { env: store.env })
  assert.deepEqual([missing.code, /there is no module/.test(missing.stderr)], [2, true])
})

test('a module that fails once others were up is tried again, later each time, until it loads', async (t) => {
  const site = await Site.of(t, 'flaky', `if (existsSync(import.meta.dirname + '/sick')) throw new Error('sick')`)
  const running = site.supervise('--max', '1')
  const first = await said(running, 'supervisor.process up')
  writeFileSync(join(site.dir, 'sick'), '')
  process.kill(first.pid!, 'SIGKILL')
  const third = await said(running, 'supervisor.process died', ({ endsInARow }) => endsInARow === 3)
  assert.deepEqual([third.level, third.error?.code], ['error', 'MODULE_FAILED'])
  for (const { endsInARow, restartInMs } of lines(running, 'supervisor.process died')) {
    const plainMs = 500 * 2 ** (endsInARow! - 1)
    assert.ok(restartInMs! >= plainMs * 0.75 && restartInMs! <= plainMs * 1.25, `${endsInARow}: ${restartInMs}`)
  }
  rmSync(join(site.dir, 'sick'))
  await said(running, 'supervisor.process up', ({ pid }) => pid !== first.pid)
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
})

test('without their supervisor the processes drain: none lives on, and what they run is finished', async (t) => {
  const site = await Site.of(t, 'orphaned')
  await site.enqueue(1)
  const running = site.supervise('--max', '2')
  const { pid } = await said(running, 'supervisor.process up')
  await until('it runs', () => site.began().size === 1)
  running.child.kill('SIGKILL')
  await until('it is noticed', () => /the supervisor of this worker is gone: draining/.test(running.stderr()))
  assert.equal(lives(pid!), true)
  site.open()
  // Its output is closed when the last process that has it is gone.
  await running.ended
  await until('it is gone', () => !lives(pid!))
  await site.allDone(1)
})

test('a reader of the log that leaves makes all of them drain', async (t) => {
  const site = await Site.of(t, 'unread')
  await site.enqueue(1)
  const running = site.supervise('--min', '2', '--max', '2')
  for (const place of [1, 2]) await said(running, 'supervisor.process up', (line) => line.place === place)
  await until('it runs', () => site.began().size === 1)
  running.child.stdout!.destroy()
  site.open()
  assert.equal((await running.ended).code, 0)
  await site.allDone(1)
})
