#!/usr/bin/env node
// Makes docs/guarantees.md: each promise of the conformance suite, on which store it is kept, and what shows it; then
// the tests of whole processes, the races, and the rules of the checker. Run after a build, with the folder of the
// compiled source: "node scripts/guarantees.mjs dist". A test compares the committed page with what this makes.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = 'docs/guarantees.md'
const MADE =
  '<!-- Made by scripts/guarantees.mjs from the suites; the first two parts from scripts/guarantees-head.md. -->'

/** What a reader wants to know, in this order. */
export const QUESTIONS = {
  kept: 'Is anything lost?',
  once: 'Does anything happen twice?',
  order: 'Who goes first?',
  time: 'When does it run?',
  failure: 'What becomes of what fails?',
  recovery: 'What becomes of what a lost worker held?',
  operating: 'What can be seen and done from outside?',
}

/** Where the cases of an operation belong, by the first word or words of their names. */
const BY_OPERATION = {
  enqueue: 'kept',
  payload: 'kept',
  walk: 'kept',
  keys: 'once',
  claim: 'once',
  settle: 'once',
  order: 'order',
  depth: 'operating',
  intake: 'operating',
  capacity: 'operating',
  limits: 'order',
  'job keys': 'order',
  tenants: 'order',
  promote: 'time',
  expire: 'time',
  retry: 'failure',
  redrive: 'failure',
  discard: 'failure',
  deadGroups: 'failure',
  suspect: 'failure',
  beat: 'recovery',
  unregister: 'recovery',
  'take over': 'recovery',
  cancel: 'operating',
  control: 'operating',
  purge: 'operating',
  pause: 'operating',
  prune: 'operating',
  get: 'operating',
  list: 'operating',
  match: 'operating',
  counts: 'operating',
  facts: 'operating',
  queues: 'operating',
  workers: 'operating',
  wake: 'operating',
}

/** Cases that answer another question than the rest of their operation. */
const BY_NAME = [
  [/^enqueue: (a delay|an instant is kept)/, 'time'],
  [/^enqueue: an instant long past/, 'order'],
  [/^enqueue: .*drained/, 'operating'],
  [/^claim: (each queue|takes from|kinds)/, 'order'],
  [/^claim: (says|tells)/, 'time'],
  [/^claim: .*pause/, 'operating'],
  [/^settle: (a completed job leaves|a record|a cancelled job)/, 'operating'],
  [/^settle: (a dead job|every reason|a job that always fails)/, 'failure'],
  [/^settle: a job that waits/, 'time'],
  [/^(beat|take over): an at-most-once/, 'once'],
  [/^redrive: a lost one/, 'once'],
  [/^(beat|unregister): .*paused/, 'operating'],
  [/^(prune: a late|take over: what was settled)/, 'once'],
]

/** What no case of one store can show: whole processes, servers that go away. On PostgreSQL. `{how}`: filled in by the test. */
export const PROCESSES = {
  'A worker that is killed loses no job: what it held runs again elsewhere, and the history says why.': [
    ['test/process/kill.test.ts', 'SIGKILL: what a worker held runs again in another one, and the history says why'],
  ],
  'An at-most-once job whose worker is killed after its start is never started again.': [
    ['test/process/kill.test.ts', 'at most once: killed after its start it is dead (lost) and never runs again'],
  ],
  'A job that kills its workers is put aside, and nobody who stood beside it is.': [
    [
      'test/process/kill.test.ts',
      'a poison job that kills its worker ({how}) is quarantined, none of its 19 neighbours is',
    ],
  ],
  'A stop loses nothing and uses no attempt: what runs finishes or is given back.': [
    [
      'test/process/kill.test.ts',
      'SIGTERM: running jobs finish, waiting ones are given back with no attempt used, exit code 0 (B21)',
    ],
    [
      'test/process/kill.test.ts',
      'SIGTERM with handlers that outlast the grace: they are aborted and start elsewhere at once (B22)',
    ],
  ],
  'A loop that is blocked for longer than its lease is found out, and its late end is refused.': [
    [
      'test/process/kill.test.ts',
      'B16: a blocked event loop ends the lease; the late finish is refused once, short jobs are not lost',
    ],
  ],
  'No transaction is open while a handler runs.': [
    [
      'test/process/kill.test.ts',
      'no transaction is open while a handler runs, and a beat writes one row whatever the worker holds',
    ],
  ],
  'A restart of the server in the middle of jobs costs none of them, and none runs beside itself.': [
    [
      'test/process/failover.test.ts',
      'B10: a restart in the middle of long jobs: nobody starts them before the lease is over, each ends once',
    ],
  ],
  'A fail-over, or a server that only reads for a while, needs nobody’s help.': [
    [
      'test/process/failover.test.ts',
      'B35: a primary turns read-only under load and comes back: nothing is lost, and nobody has to help',
    ],
    [
      'test/process/failover.test.ts',
      'B35: the primary is lost, its address leads to a standby, which is promoted later: work goes on there',
    ],
  ],
  'After an outage of any length work goes on by itself, and nobody is taken over for it.': [
    ['test/long/network.test.ts', 'B31: after an outage of many polls and leases ({how}) work goes on by itself'],
    [
      'test/long/recovery.test.ts',
      'the store is down for 60 s: nobody is taken over, no attempt is lost, everything ends',
    ],
  ],
  'Connections that are cut again and again end no process and lose no job.': [
    [
      'test/process/flapping.test.ts',
      'connections are cut every 50 to 200 ms: nobody dies, and each job ends once or was retried (seed {seed})',
    ],
  ],
  'All of it holds behind a transaction pooler.': [
    [
      'test/process/pooler.test.ts',
      'B132, B133: workers behind a transaction pooler, one of them killed: each job ends, none is doubled, no error shows',
    ],
    [
      'test/process/pooler-conformance.test.ts',
      'B132: what the suite goes through hands two sessions around among all that come',
    ],
  ],
  'A job of your transaction is there with its commit, and never without.': [
    [
      'test/cases/transactions.test.ts',
      'B181: before idle workers a job in a caller’s transaction starts only after the commit, and soon; after a rollback never',
    ],
    [
      'test/cases/transactions.test.ts',
      'B183: a producer that dies right after its commit has enqueued, one that dies right before it has not; nothing lies between',
    ],
  ],
  'An upgrade takes all jobs along while workers of the version before go on.': [
    ['test/postgres/migrate-live.test.ts', undefined],
    ['test/upgrade/upgrades.ts', undefined],
  ],
}

/** The checker's tables of rules: a later one is a line here. */
const RULE_TABLES = [
  ['testing/checker/rules.js', 'RULES'],
  ['testing/checker/scene-table.js', 'RULES_OF_SCENE'],
]

/** What each count of a verdict means. */
const BREACHES = {
  lost: 'something is lost',
  settledTwice: 'something is settled twice',
  doubledEffects: 'an effect is doubled for no reason',
  quarantinedInnocents: 'somebody innocent is quarantined',
  needlessTakeOvers: 'a living worker is taken over',
  otherFaults: 'a promise of another kind is broken',
}

/** The page, made of the compiled source in that folder. */
export async function page(built) {
  const load = (path) => import(pathToFileURL(join(built, path)).href)
  const { CASES } = await load('testing/conformance/index.js')
  const stores = await storesOf(load)
  const rules = await rulesOf(load)
  const head = readFileSync(join(ROOT, 'scripts/guarantees-head.md'), 'utf8').trim()
  const parts = [
    '# Guarantees',
    MADE,
    head,
    promisesPart(CASES, stores),
    processesPart(),
    racesPart(),
    rulesPart(rules),
  ]
  return `${parts.join('\n\n')}\n`
}

/** The stores, with the facets that each lacks. One that is opened and not used connects to nothing. */
async function storesOf(load) {
  const { lacking } = await load('testing/conformance/case.js')
  const { openMemory } = await load('storage/memory/index.js')
  const { openPostgres } = await load('storage/postgres/index.js')
  const stores = { memory: openMemory(), PostgreSQL: openPostgres({ url: 'postgres://nobody@127.0.0.1:1/none' }) }
  return Object.entries(stores).map(([name, storage]) => ({ name, lacks: (one) => lacking(storage, one) }))
}

async function rulesOf(load) {
  const tables = await Promise.all(RULE_TABLES.map(async ([path, name]) => (await load(path))[name]))
  return tables.flat()
}

/** Which question a case answers. A new operation has to be given one. */
export function questionOf({ name }) {
  const special = BY_NAME.find(([pattern]) => pattern.test(name))
  if (special !== undefined) return special[1]
  const question = BY_OPERATION[name.split(':')[0]]
  if (question === undefined) throw new Error(`no question of the guarantees is answered by "${name}"`)
  return question
}

function promisesPart(cases, stores) {
  const sections = Object.entries(QUESTIONS).map(([question, title]) => {
    const answers = cases.filter((one) => questionOf(one) === question)
    const promises = grouped(answers)
    const rows = [...promises].map(([promise, all]) => [
      promise,
      ...stores.map(({ lacks }) => (all.every((one) => lacks(one) === undefined) ? 'yes' : 'no')),
      all.map(({ name }) => `_${escaped(name)}_`).join('; '),
    ])
    return `### ${title}\n\n${table(['promise', ...stores.map(({ name }) => name), 'case'], rows)}`
  })
  return [
    '## The promises',
    `Each is a case of the conformance suite, which is data that anybody can run on a store of their own ([Testing](testing.md)). They run on the memory store (\`test/conformance\`) and on PostgreSQL 18 and 15 (\`test/postgres\`, \`test/postgres-15\`), and behind a transaction pooler. Broken stores, at least one for each kind of promise, show that the suite notices (\`test/conformance/mutants.test.ts\`). Redis and Amazon SQS come later.`,
    ...sections,
  ].join('\n\n')
}

function grouped(answers) {
  const promises = new Map()
  for (const one of answers) promises.set(one.promise, [...(promises.get(one.promise) ?? []), one])
  return promises
}

function processesPart() {
  const rows = Object.entries(PROCESSES).map(([promise, tests]) => [
    promise,
    tests
      .map(([file, name]) => `[${short(file)}](../${file})${name === undefined ? '' : `: _${escaped(name)}_`}`)
      .join('; '),
  ])
  return [
    '## Whole processes, and servers that go away',
    'On PostgreSQL, with real processes and a real server.',
    table(['promise', 'test'], rows),
  ].join('\n\n')
}

function racesPart() {
  return [
    '## Races between two statements',
    'Two operations that take the same rows are played on PostgreSQL in each order, the second one while the first is held, or it is said why they cannot meet at one row: [Races](races.md) has the matrix. Faults that other queues were reported to have are played as well: [Cases](cases.md).',
  ].join('\n\n')
}

function rulesPart(rules) {
  const rows = rules.map(({ name, breach }) => [name, BREACHES[breach] ?? breach])
  return [
    '## The rules of the checker',
    `The checker reads what handlers did and what clients were told, and the store once at the end. It judges runs of chaos with real processes on PostgreSQL ([Chaos](chaos.md)), the [simulator](simulator.md)’s runs of the same client and worker on virtual time, the drills of [\`leasehold verify\`](verify.md) on a store of your own, and logs of production ([Checker](checker.md)).`,
    table(['rule', 'when it is broken'], rows),
  ].join('\n\n')
}

function short(file) {
  return file.replace(/^test\/|(\.test)?\.ts$/g, '')
}

function escaped(text) {
  return text.replaceAll('_', '\\_').replaceAll('*', '\\*').replaceAll('`', '\\`').replaceAll('|', '\\|')
}

/** Its columns stand below each other, as the formatter of the repository has it. */
function table(heads, rows) {
  const lines = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(3, ...lines.map((cells) => [...cells[column]].length)))
  const drawn = lines.map((cells) => cells.map((cell, column) => cell + ' '.repeat(widths[column] - [...cell].length)))
  const rule = widths.map((width) => '-'.repeat(width))
  return [drawn[0], rule, ...drawn.slice(1)].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = join(process.cwd(), process.argv[2] ?? 'dist')
  writeFileSync(join(ROOT, PAGE), await page(built))
}
