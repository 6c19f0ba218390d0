#!/usr/bin/env node
// Runs a level of the checks: check, test or all. Starts the servers that its tests need, counts what passed, says
// what it left out, and closes with one line "N passed, N failed". Called by the npm scripts and by CI.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FailedTests } from './failed-tests.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Folders of tests. `check` needs no service. */
const CHECK = [
  'house',
  'core',
  'observe',
  'client',
  'worker',
  'types',
  'storage',
  'testing',
  'conformance',
  'bench',
  'sim',
]
const TEST = ['embedded', 'postgres', 'upgrade', 'process', 'cases', 'cli', 'docs']
const ALL = ['postgres-15', 'bench-run', 'chaos', 'long']

const LEFT_OUT = {
  check:
    'everything that needs a service: PostgreSQL conformance and races, process kills, CLI, embedded server, README (npm test); PostgreSQL 15 and the long runs (npm run test:all)',
  test: 'PostgreSQL 15 and the long runs: 1,000 simulated seeds and the mutants, seven forms of chaos, outages, broken networks and small pools, migrators killed at each statement, removed folders of the embedded server, supervisors, soak, sabotaged stores, the benchmarks in small (npm run test:all)',
  rest: 'what npm test runs (run it beside this)',
  all: 'nothing but size: 20,000 seeds (npm run sim), 2,000 sequences (sim -- --differential), ten minutes of each form of chaos, 15 of soak',
}

const level = process.argv[2] ?? 'check'
if (!(level in LEFT_OUT)) {
  console.error(`unknown level "${level}"; one of ${Object.keys(LEFT_OUT).join(', ')}`)
  process.exit(2)
}
const counts = { passed: 0, failed: 0 }
/** What failed, by name, for the end: whoever reads a long log looks there first. */
const failures = []
const servers = []
const started = Date.now()

try {
  const build = level !== 'rest' ? await checks() : await command('build', 'npm', ['run', '-s', 'build:test'])
  if (build) await suites()
} catch (error) {
  // Such as a server that does not start. It is told like any other failure, and the closing line still comes.
  failed(`the run itself: ${error instanceof Error ? error.message : error}`)
} finally {
  for (const server of servers) await server.stop()
}
console.log(`\nlevel ${level}: ${Math.round((Date.now() - started) / 1000)} s; left out: ${LEFT_OUT[level]}`)
if (failures.length > 0) console.log(`failed:\n${failures.map((name) => `  ${name}`).join('\n')}`)
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed === 0 ? 0 : 1

async function checks() {
  await command('format and lint', 'npx', ['biome', 'check', '--error-on-warnings', '.'])
  return command('types and build', 'npm', ['run', '-s', 'build:test'])
}

async function suites() {
  if (level !== 'rest') await tests('unit', CHECK, { concurrency: 2 })
  if (level === 'check') return
  if (!(await command('package build', 'npm', ['run', '-s', 'build']))) return
  const env = { LEASEHOLD_TEST_URL_18: await server(18) }
  // Two at a time: most of them wait for processes to start, to die or to be found dead.
  if (level !== 'rest') await tests('integration', TEST, { concurrency: 2, env })
  if (level === 'test') return
  env.LEASEHOLD_TEST_URL_15 = await server(15)
  await tests('all', ALL, { concurrency: 1, env })
  await command('chaos: 200 kills over a backlog of 200,000', process.execPath, [
    'build/chaos/main.js',
    'kill',
    '--json',
  ])
}

/** A real server in a temporary folder, ended with the run. */
async function server(major) {
  const { startEmbedded } = await import('@leasehold/embedded')
  const dir = await mkdtemp(join(tmpdir(), `leasehold-pg${major}-`))
  const binaries = major === 18 ? {} : { binaries: join(ROOT, `node_modules/postgres-${major}`) }
  const running = await startEmbedded({ dir, ...binaries })
  servers.push({
    stop: async () => {
      await running.stop()
      await rm(dir, { recursive: true, force: true })
    },
  })
  return running.url
}

async function tests(name, folders, { concurrency, env = {} }) {
  const files = folders.flatMap(testFiles)
  if (files.length === 0) return
  console.log(`\n== ${name}: ${files.length} files`)
  const args = [
    '--test',
    `--test-concurrency=${concurrency}`,
    '--test-timeout=300000',
    '--test-reporter=spec',
    ...files,
  ]
  const names = new FailedTests(ROOT)
  const { code, output } = await run(process.execPath, args, env, (chunk) => names.read(chunk))
  counts.passed += summed(output, 'pass')
  const count = summed(output, 'fail') + summed(output, 'cancelled')
  counts.failed += count
  failures.push(...names.found().map((found) => [`${name}: ${found}`, ...names.reason(found)].join('\n    ')))
  // A runner that died before its summary has failed, whatever it counted.
  if (code !== 0 && count === 0) failed(`${name}: the test runner ended with code ${code} and no summary`)
}

function failed(what) {
  counts.failed += 1
  failures.push(what)
}

function testFiles(folder) {
  const path = join(ROOT, 'build/test', folder)
  try {
    return readdirSync(path, { recursive: true })
      .filter((file) => file.endsWith('.test.js'))
      .sort()
      .map((file) => join(path, file))
  } catch {
    return []
  }
}

function summed(output, word) {
  const match = new RegExp(`^\\S* ?${word} (\\d+)$`, 'm').exec(output)
  return match ? Number(match[1]) : 0
}

async function command(name, program, args) {
  console.log(`\n== ${name}`)
  const { code } = await run(program, args, {})
  if (code === 0) counts.passed += 1
  else failed(`step "${name}" (${[program, ...args].join(' ')})`)
  return code === 0
}

function run(program, args, env, heard = () => {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let tail = ''
    child.stdout.setEncoding('utf8')
    child.stdout.on('data', (chunk) => {
      process.stdout.write(chunk)
      heard(chunk)
      tail = (tail + chunk).slice(-20_000)
    })
    child.on('close', (code) => resolve({ code, output: tail }))
  })
}
