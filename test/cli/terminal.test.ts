/** The command line as somebody at a terminal has it: colours, widths, questions, redraws, Ctrl-C. */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { widthOf } from '../../src/cli/width.js'
import { type CliStore, cliStore, handlerModule, run, scratchFolder } from './command.js'
import { CTRL_C, CTRL_D, needsTerminal, type Session, screenOf, terminal } from './terminal.js'

let store: CliStore

before(async () => {
  store = await cliStore('terminal')
})
after(() => store.drop())

function typed(t: TestContext, columns: number, env: Record<string, string>, ...args: string[]): Session {
  const session = terminal(args, { columns, env: { ...store.env, ...env } })
  t.after(() => session.child.kill('SIGKILL'))
  return session
}

async function enqueued(queue: string, payloads: string[]): Promise<void> {
  const args = ['enqueue', 'k', '--stdin-lines', '--queue', queue]
  const { code } = await run(args, { env: store.env, input: payloads.join('\n') })
  assert.equal(code, 0)
}

async function dead(t: TestContext, kind: string, count: number): Promise<void> {
  const text = `export const all = defineJob('${kind}', { queue: '${kind}' }).handle((n) => dead('日本語 \\u001b[2J\\u202e' + 'とても長い'.repeat(40)))`
  const payloads = Array.from({ length: count }, (_, n) => String(n)).join('\n')
  await run(['enqueue', kind, '--stdin-lines', '--queue', kind], { env: store.env, input: payloads })
  assert.equal((await store.run('work', await handlerModule(await scratchFolder(t), text), '--until-empty')).code, 0)
}

const COLOUR = /\u001b\[\d+m/

test('colours are for the terminal, and NO_COLOR turns them off', needsTerminal, async (t) => {
  await dead(t, 'coloured', 1)
  const coloured = typed(t, 100, {}, 'dead', 'list')
  assert.equal(await coloured.ended, 0)
  assert.match(coloured.written(), /\u001b\[31mdead: rejected\u001b\[39m/)
  const plain = typed(t, 100, { NO_COLOR: '1' }, 'dead', 'list')
  assert.equal(await plain.ended, 0)
  assert.match(plain.written(), /dead: rejected/)
  assert.doesNotMatch(plain.written(), COLOUR)
})

for (const columns of [40, 60, 80, 120, 200])
  test(
    `nothing wraps on ${columns} columns, and nothing of the store drives the terminal`,
    needsTerminal,
    async (t) => {
      await dead(t, `narrow${columns}`, 2)
      for (const args of [
        ['jobs', 'list'],
        ['dead', 'list'],
        ['dead', 'group'],
        ['queues', 'list'],
        ['stats'],
        ['workers'],
        // The id is 36 columns wide and stands beside time, state and kind: on less it may wrap.
        ...(columns < 80 ? [] : [['tail', '--no-follow', '--since', '1h']]),
        ['dead', 'redrive', '--kind', `narrow${columns}`, '--dry-run'],
      ]) {
        const session = typed(t, columns, { NO_COLOR: '1' }, ...args)
        await session.ended
        const text = session.written()
        assert.doesNotMatch(text, /\u001b|\u202e/, args.join(' '))
        const lines = text.split(/\r?\n/)
        // A command to copy is never cut.
        for (const line of lines.filter((one) => !/leasehold|more: /.test(one)))
          assert.ok(widthOf(line) <= columns, `${args.join(' ')}: ${widthOf(line)} columns: ${line}`)
      }
    },
  )

for (const columns of [80, 120])
  test(`on ${columns} columns lists and tail tell what each job died of, whole`, needsTerminal, async (t) => {
    const kind = `told${columns}`
    const error = 'the bank answered 503 Service Unavailable after 30 seconds, and its second address did not'
    const text = `export const all = defineJob('${kind}', { queue: '${kind}' }).handle(() => dead('${error}'))`
    await run(['enqueue', kind, '--queue', kind], { env: store.env })
    assert.equal((await store.run('work', await handlerModule(await scratchFolder(t), text), '--until-empty')).code, 0)
    for (const args of [
      ['tail', '--no-follow', '--since', '1h', '--kind', kind],
      ['dead', 'list', '--kind', kind],
      ['dead', 'group', '--kind', kind],
    ]) {
      const session = typed(t, columns, { NO_COLOR: '1' }, ...args)
      assert.equal(await session.ended, 0)
      // A command to copy is never cut.
      const lines = session
        .written()
        .split('\r\n')
        .filter((line) => !line.includes('leasehold'))
      for (const line of lines) assert.ok(widthOf(line) <= columns, line)
      const below = lines.filter((line) => line.startsWith('    ')).map((line) => line.trim())
      assert.ok(below.join(' ').endsWith(`Rejected: ${error}`), `${args.join(' ')}: ${session.written()}`)
    }
  })

test('the doctor breaks its sentences between words, on any width', needsTerminal, async (t) => {
  for (const columns of [40, 80]) {
    const session = typed(t, columns, { NO_COLOR: '1' }, 'doctor')
    await session.ended
    assert.match(session.written(), /^ok +server/m)
    for (const line of session.written().split(/\r?\n/)) assert.ok(widthOf(line) <= columns, line)
  }
})

test(
  'somebody who can be asked is asked, with the number; no means no, and so do Ctrl-C and Ctrl-D',
  needsTerminal,
  async (t) => {
    await dead(t, 'asked', 3)
    for (const [key, code] of [
      ['n\r', 5],
      ['\r', 5],
      [CTRL_C, 130],
      [CTRL_D, 130],
    ] as const) {
      const session = typed(t, 80, {}, 'dead', 'discard', '--kind', 'asked')
      await session.wrote(/Delete 3 dead letters \(--kind asked\) for good\? \[y\/N\] /)
      session.press(key)
      assert.equal(await session.ended, code, JSON.stringify(key))
      assert.match(session.written(), /nothing was changed\r\n$/)
      assert.doesNotMatch(session.written(), /error|fix:/)
    }
    const yes = typed(t, 80, {}, 'dead', 'discard', '--kind', 'asked')
    await yes.wrote(/\[y\/N\] /)
    yes.press('y\r')
    assert.equal(await yes.ended, 0)
    assert.match(yes.written(), /3 discarded/)
    await enqueued('asked.too', ['1', '2'])
    const purge = typed(t, 80, {}, 'queues', 'purge', 'asked.too')
    await purge.wrote(/Delete 2 waiting jobs of asked\.too for good\? \[y\/N\] /)
    purge.press('y\r')
    assert.equal(await purge.ended, 0)
  },
)

test('progress is drawn in place, and Ctrl-C leaves a clean screen with what was done', needsTerminal, async (t) => {
  await dead(t, 'slow', 60)
  const session = typed(t, 60, {}, 'dead', 'redrive', '--kind', 'slow', '--rate', '20/s')
  await session.wrote(/Redrive 60 dead letters \(--kind slow\)\? \[y\/N\] /)
  session.press('y\r')
  await session.wrote(/\d+ of 60 redriven/)
  session.press(CTRL_C)
  assert.equal(await session.ended, 130)
  const screen = screenOf(session.written()).filter((line) => line !== '')
  assert.match(screen[0]!, /^Redrive 60 dead letters \(--kind slow\)\? \[y\/N\] y$/)
  assert.deepEqual(screen.slice(1, -1), ['stopped by Ctrl-C; the same command goes on with the rest'])
  assert.match(screen.at(-1)!, /^\d+ redriven$/)
  assert.ok(session.written().endsWith('redriven\r\n'))
  assert.match(session.written(), /\u001b\[\?25h/, 'the cursor is back')
})

test('stats --watch redraws itself, and ends with Ctrl-C', needsTerminal, async (t) => {
  const session = typed(t, 80, { NO_COLOR: '1' }, 'stats', '--watch', '--every', '500ms')
  await session.wrote(/QUEUE[\s\S]*QUEUE[\s\S]*QUEUE/)
  session.press(CTRL_C)
  assert.equal(await session.ended, 0)
  const screen = screenOf(session.written())
  assert.equal(screen.filter((line) => line.startsWith('QUEUE')).length, 1, screen.join('\n'))
})
