/** `npm run chaos -- FORM [--seconds N] [--json]`: breaks a running system on purpose and judges what came of it. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { EXIT } from '../src/cli/exit-codes.js'
import { grouped } from '../src/core/show.js'
import { FORM_NAMES, FORMS, type FormName } from '../src/testing/chaos/forms.js'
import type { Verdict } from '../src/testing/checker/check.js'
import { Folder, type RunFacts } from './folder.js'
import { HELD_JOBS } from './holder.js'
import { isProven, reportLine, reportText } from './report.js'
import { type RunOptions, run } from './run.js'
import { ChaosStore } from './store.js'
import { Usage } from './usage.js'

const BACKLOG = 200_000
const WORKERS = 4
const SEED_MAX = 2 ** 31
const ALL = 'all'

const USAGE = `npm run chaos -- FORM [options]

${FORM_NAMES.map((name) => `  ${name.padEnd(14)}${FORMS[name].about}`).join('\n')}
  ${ALL.padEnd(14)}every form, one after the other

  --seconds N   acts go on for N seconds (default: the full form; ${FORMS.freeze.full.seconds}, but for kill)
  --jobs N      varied jobs (default: what N seconds take; for the full form of kill ${grouped(FORMS.kill.full.jobs)})
  --backlog N   cheap jobs that wait beside them (default: ${grouped(BACKLOG)})
  --kills N     SIGKILLs of the form kill at most (default: ${FORMS.kill.full.kills}, or what N seconds hold)
  --workers N   worker processes (default: ${WORKERS})
  --seed N      the plan of an earlier run
  --url URL     a PostgreSQL of yours; the run makes a schema of its own (default: an embedded one); not for
                ${FORM_NAMES.filter((name) => FORMS[name].ownServer).join(', ')} and ${ALL}
  --keep DIR    keeps logs and store in DIR
  --recount DIR judges again what lies in DIR
  --json        one line of JSON at the end`

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error instanceof Usage ? `${error.message}\n\n${USAGE}` : error)
  return error instanceof Usage ? EXIT.usage : EXIT.failed
})

async function main(args: string[]): Promise<number> {
  const { values, form } = read(args)
  const told = (facts: RunFacts, verdict: Verdict): void => {
    // People may read beside a script.
    if (values.json) note(reportText(facts, verdict))
    console.log(values.json ? JSON.stringify(reportLine(facts, verdict)) : reportText(facts, verdict))
  }
  if (values.recount !== undefined) {
    if (form !== undefined) throw new Usage('--recount DIR knows its form; leave the form out')
    const folder = new Folder(values.recount)
    if (!folder.isThere) throw new Usage(`--recount: ${values.recount} holds no run; one is kept by --keep DIR`)
    const facts = await folder.readRun()
    const verdict = await folder.judged(facts)
    told(facts, verdict)
    return isProven(verdict) ? EXIT.ok : EXIT.unproven
  }
  if (form === undefined) throw new Usage('which form?')
  const forms = form === ALL ? FORM_NAMES : [form]
  if (values.url !== undefined && (form === ALL || FORMS[form].ownServer))
    throw new Usage(`--url: ${form} spoils the server itself, and never runs on one of yours`)
  const asked = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => asked.abort())
  let worst: number = EXIT.ok
  for (const one of forms) {
    const keep = values.keep === undefined || form !== ALL ? values.keep : join(values.keep, one)
    const code = await played(optionsOf(one, values), { url: values.url, keep, asked: asked.signal }, told)
    worst = Math.max(worst, code)
    if (asked.signal.aborted) break
  }
  return worst
}

function optionsOf(form: FormName, values: Values): RunOptions {
  return {
    form,
    seed: whole(values.seed, '--seed') ?? Math.floor(Math.random() * SEED_MAX),
    seconds: whole(values.seconds, '--seconds', 1),
    jobs: whole(values.jobs, '--jobs'),
    backlog: whole(values.backlog, '--backlog', HELD_JOBS) ?? BACKLOG,
    kills: whole(values.kills, '--kills', 1),
    workers: whole(values.workers, '--workers', 1) ?? WORKERS,
  }
}

async function played(
  options: RunOptions,
  { url, keep, asked }: { url: string | undefined; keep: string | undefined; asked: AbortSignal },
  told: (facts: RunFacts, verdict: Verdict) => void,
): Promise<number> {
  note(`${options.form}: ${FORMS[options.form].about}; seed ${options.seed}`)
  const folder = await Folder.make(keep)
  const store = await ChaosStore.open({ url, dir: folder.store })
  // What was found is worth more than room on the disk.
  let worthKeeping = keep !== undefined
  try {
    const { facts, verdict } = await run({ options, folder, store, note, asked })
    worthKeeping ||= !verdict.holds
    told(facts, verdict)
    return isProven(verdict) ? EXIT.ok : EXIT.unproven
  } catch (error) {
    if (!asked.aborted) throw error
    note('ended before it was done; nothing is proven')
    return EXIT.interrupted
  } finally {
    await store.close(worthKeeping)
    if (worthKeeping) note(`kept in ${folder.dir}`)
    else await rm(folder.dir, { recursive: true, force: true, maxRetries: 20 })
  }
}

type Values = ReturnType<typeof parsed>['values']

function read(args: string[]): { values: Values; form: FormName | typeof ALL | undefined } {
  const { values, positionals } = parsed(args)
  const [form, ...more] = positionals
  if (more.length > 0) throw new Usage(`one form at a time, not ${positionals.join(' and ')}`)
  if (form !== undefined && form !== ALL && !FORM_NAMES.includes(form as FormName))
    throw new Usage(`there is no form "${form}"`)
  return { values, form: form as FormName | typeof ALL | undefined }
}

function parsed(args: string[]) {
  const text = { type: 'string' } as const
  const options = {
    ...{ seconds: text, jobs: text, backlog: text, kills: text, workers: text, seed: text },
    ...{ url: text, keep: text, recount: text, json: { type: 'boolean' } as const },
  }
  try {
    return parseArgs({ args, allowPositionals: true, options })
  } catch (error) {
    throw new Usage((error as Error).message)
  }
}

function whole(given: string | undefined, option: string, min = 0): number | undefined {
  if (given === undefined) return undefined
  const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN
  if (value >= min) return value
  throw new Usage(`${option} takes a whole number from ${min} on, not "${given}"`)
}

function note(text: string): void {
  console.error(text)
}
