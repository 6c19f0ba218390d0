/** Mistakes are refused before anything is done, with the nearest word, exit code 2 and a form for scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { handlerModule, parsed, run, scratchFolder } from './command.js'

const MISTAKES: [string[], RegExp][] = [
  [['demmo'], /unknown command 'demmo' \(Did you mean demo\?\)/],
  [['jobs', 'lst'], /unknown command 'lst' \(Did you mean list\?\)/],
  [['jobs', 'list', '--stat', 'dead'], /unknown option '--stat' \(Did you mean --state\?\)/],
  [['work', 'x.mjs', '--concurency', '3'], /unknown option '--concurency' \(Did you mean --concurrency\?\)/],
  [['jobs', 'list', '--jsn'], /unknown option '--jsn' \(Did you mean --json\?\)/],
  [['jobs', 'list', '--state', 'compleated'], /did you mean "completed"\?/],
  [['jobs', 'list', '--limit', '0'], /--limit: 0 is not allowed; give a whole number from 1 to 1,000/],
  [['jobs', 'list', '--limit', '1e3'], /--limit: "1e3" is not allowed/],
  [['jobs', 'list', '--queue', 'a b'], /--queue: "a b" is not a name/],
  [['jobs', 'list', '--state', 'ready,dead', '--after', 'x'], /--after continues the list of one state/],
  [['jobs', 'show'], /missing required argument 'id'/],
  [['workers', 'extra'], /too many arguments/],
  [['enqueue', 'k', '--priority', 'hihg'], /did you mean "high"\?/],
  [['enqueue', 'k', '--priority', '16'], /--priority: 16 is not allowed/],
  [['enqueue', 'k', '--delay', 'soon'], /--delay: "soon" is not a duration/],
  [['enqueue', 'k', '--at', '2030-01-01T00:00:00'], /--at: .* has no time zone/],
  [
    ['enqueue', 'k', '--at', 'tomorrow'],
    /--at: "tomorrow" is not allowed; give an ISO text with Z or an offset \(".*"\) \(/,
  ],
  [['enqueue', 'k', '--attempts', '0'], /--attempts: 0 is not allowed/],
  [['enqueue', 'k', '--timeout', 'long'], /--timeout: "long" is not a duration/],
  [['help', 'jobs', 'lst'], /unknown command 'lst'; did you mean "list"\?/],
  [['enqueue', 'k', '--id', 'x'], /--id: "x" is not allowed; give a UUID of version 7/],
  [['enqueue', 'k', '{a:1}', '--url', 'memory:'], /the payload is not JSON/],
  [['enqueue', 'a b', '--url', 'memory:'], /"a b" is not a name/],
  [
    ['enqueue', 'k', '1', '--stdin-lines', '--url', 'memory:'],
    /--stdin-lines makes many jobs; a payload is of one job/,
  ],
  [['dead', 'redrive', '--url', 'memory:'], /nothing was chosen/],
  [['dead', 'redrive', 'x', '--all'], /give ids or filters, not both: --all/],
  [['dead', 'redrive', 'x', '--kind', 'k'], /give ids or filters, not both: --kind/],
  [['dead', 'redrive', 'x', '--max', '3'], /give ids or filters, not both: --max/],
  [['dead', 'redrive', '--all', '--reason', 'fialed'], /did you mean "failed"\?/],
  [['dead', 'redrive', '--all', '--rate', '5/d'], /--rate: "5\/d" is not allowed; give a rate \(50\/s/],
  [['dead', 'discard', '--older-than', '7d'], /--older-than alone may be all there are/],
  [['dead', 'discard', '--fingerprint', 'xyz'], /--fingerprint: "xyz" is not allowed; .* \(12 hex digits\)/],
  [['dead', 'discrad', 'x'], /unknown command 'discrad' \(Did you mean discard\?\)/],
  [['jobs', 'cancel', '--state', 'running'], /--state alone may be all there are/],
  [['jobs', 'cancel', '--queue', 'q', '--state', 'compleated'], /--state: "compleated" is not allowed/],
  [['jobs', 'retry', '--queue', 'q', '--state', 'retring'], /did you mean "retrying"\?/],
  [
    ['jobs', 'retry', '--queue', 'q', '--state', 'running'],
    /--state: "running" is not allowed; give delayed, retrying/,
  ],
  [['queues', 'purge'], /missing required argument 'queue'/],
  [['queues', 'drain', 'q', '--timeout', 'soon'], /--timeout: "soon" is not a duration/],
  [['stats', '--wacth'], /unknown option '--wacth' \(Did you mean --watch\?\)/],
  [['stats', '--watch', '--every', '1ms'], /--every: "1ms" is not allowed/],
  [['tail', '--state', 'deda'], /did you mean "dead"\?/],
  [['tail', '--since', 'yesterday'], /--since: "yesterday" is not a duration/],
  [['doctor', '--stric'], /unknown option '--stric' \(Did you mean --strict\?\)/],
  [['bench', 'dran', '--url', 'memory:'], /there is no scenario "dran"; did you mean "drain"\?/],
  [['bench', '--url', 'memory:'], /bench measures a PostgreSQL/],
  [['jobs', 'cancel', '123', '--url', 'memory:'], /id: "123" is not allowed; give the id of a job, a UUID/],
  [['migrate', '--check', '--print'], /give one of --check, --print and --print-grants/],
  [['work', 'none.mjs', '--url', 'memory:'], /there is no module none\.mjs/],
  [['work', 'x.mjs', '--max', '5s'], /--max is a bound for --until-empty/],
  [['work', 'x.mjs', '--until-empty', '--max', '8'], /--max is how long at most, such as 10m, and not 8/],
  [['work', 'x.mjs', '--until-empty', '--min', '2'], /--min is for a supervisor/],
  [['work', 'x.mjs', '--target', '3'], /--target is for several processes; give --max as well/],
  [['work', 'x.mjs', '--min', '4', '--max', '2'], /4 processes at least and 2 at most do not go together/],
  [['work', 'x.mjs', '--max', '2', '--target', '5s'], /--target: "5s" is not allowed; .*a time is for --scale-by wait/],
  [['work', 'x.mjs', '--max', '2', '--scale-by', 'wait', '--target', '5'], /a number is for --scale-by depth/],
  [['work', 'x.mjs', '--max', '2', '--scale-by', 'dept'], /did you mean "depth"\?/],
  [['work', 'x.mjs', '--max', '0'], /--max: 0 is not allowed; give a whole number from 1 to 256/],
  [['work', 'x.mjs', '--queues', 'a=x'], /--queues: "a=x" is not allowed/],
  [['demo', '--url', 'x'], /takes no --url/],
  [['dev', '--url', 'x'], /takes no --url/],
  [['jobs', 'list', '--url', 'postgre://x'], /did you mean "postgres:"\?/],
  [['workers'], /no store was named/],
]

for (const [args, message] of MISTAKES)
  test(`refused: leasehold ${args.join(' ')}`, async () => {
    const { code, stdout, stderr } = await run(args)
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, message)
    assert.match(stderr, /^error: .+ \([A-Z_]+\)$/m)
    assert.doesNotMatch(stderr, /\n\s+at /)
  })

test('with --json a mistake is one document, too', async () => {
  const { code, stdout, stderr } = await run(['jobs', 'lst', '--json'])
  assert.equal(code, 2)
  const { error } = parsed<{ error: { code: string; message: string } }>(stdout)
  assert.equal(error.code, 'USAGE')
  assert.match(error.message, /Did you mean list/)
  assert.match(stderr, /^error: /)
})

test('who names no store is told how to name one', async () => {
  const { stderr } = await run(['jobs', 'list'])
  assert.match(stderr, /--url or set LEASEHOLD_URL.*postgres:\/\/.*embedded:\.\/data/)
})

test('a store that is away is a failure with a hint, and shows no password', async () => {
  const url = 'postgres://someone:secret-word@127.0.0.1:1/app'
  const { code, stdout, stderr } = await run(['jobs', 'list', '--url', url, '--verbose'])
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /^error: .*ECONNREFUSED.* \(STORE_UNAVAILABLE\)$/m)
  assert.match(stderr, /^fix: .*leasehold dev/m)
  assert.doesNotMatch(stderr, /secret-word/)
})

test('--verbose shows where an error comes from', async () => {
  const { stderr } = await run(['workers', '--verbose'])
  assert.match(stderr, /\n {4}at .*invocation/)
})

test('help is on stdout and names every exit code; a missing command shows it on stderr', async () => {
  const help = await run(['--help'])
  assert.equal(help.code, 0)
  for (const exit of [0, 1, 2, 3, 4, 130, 143]) assert.match(help.stdout, new RegExp(`^  ${exit} `, 'm'))
  const missing = await run(['jobs'])
  assert.equal(missing.code, 2)
  assert.equal(missing.stdout, '')
  assert.match(missing.stderr, /Usage: leasehold jobs/)
})

test('the help of every command shows how it is called', async () => {
  const { stdout } = await run(['--help'])
  const words = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1]!).filter((word) => word !== 'help')
  assert.ok(words.length >= 12, stdout)
  const commands = words.flatMap((word) => PARTS[word]?.map((part) => [word, part]) ?? [[word]])
  for (const command of commands) {
    const help = await run([...command, '--help'])
    assert.equal(help.code, 0)
    assert.match(help.stdout, new RegExp(`^Examples?:\n {2}npx leasehold ${command.join(' ')}\\b`, 'm'))
  }
})

const PARTS: Record<string, string[]> = {
  jobs: ['list', 'show', 'cancel', 'retry'],
  dead: ['list', 'show', 'group', 'redrive', 'discard'],
  queues: ['list', 'pause', 'resume', 'drain', 'purge'],
}

test('a message names the command as it can be typed', async () => {
  const url = 'postgres://someone@127.0.0.1:1/app'
  const fixOf = async (agent: string): Promise<string> =>
    (await run(['jobs', 'list', '--url', url], { env: { npm_config_user_agent: agent } })).stderr
  assert.match(await fixOf('npm/10.8.2 node/v20'), /"npx leasehold dev"/)
  assert.match(await fixOf('pnpm/9.1.0 npm/? node/v20'), /"pnpm leasehold dev"/)
})

test('the version is that of the package', async () => {
  const { code, stdout } = await run(['--version'])
  assert.equal(code, 0)
  assert.match(stdout, /^\d+\.\d+\.\d+\S*\n$/)
})

test('help of a command inside of another is that of the command', async () => {
  const { code, stdout } = await run(['help', 'jobs', 'list'])
  assert.equal(code, 0)
  assert.match(stdout, /^Usage: leasehold jobs list /)
  assert.equal(stdout, (await run(['jobs', 'list', '--help'])).stdout)
  assert.equal((await run(['help'])).stdout, (await run(['--help'])).stdout)
})

test('a module that is not there, and two handlers of a kind, come with what to do', async (t) => {
  const none = await run(['work', 'none.mjs', '--url', 'memory:'])
  assert.match(none.stderr, /^fix: +give the path of a file; looked for .*none\.mjs$/m)
  const text = `export const a = defineJob('x').handle(() => 1)\nexport const b = defineJob('x').handle(() => 2)`
  const twice = await run(['work', await handlerModule(await scratchFolder(t), text), '--url', 'memory:'])
  assert.match(twice.stderr, /^fix: +export one handler for each kind/m)
})
