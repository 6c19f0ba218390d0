#!/usr/bin/env node
// Makes docs/reference/*.md from the code's own tables: errors, options, events, the command line. What an option may
// be is asked of the code: it is given something wrong, and its refusal says. Run after a build by
// "npm run docs:reference"; a test compares the committed pages with what this makes.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MADE =
  '<!-- Made by scripts/reference.mjs from the source. Change it there, then run `npm run docs:reference`. -->'

/** The pages, by path. `built` holds the compiled source: dist, or build/src. */
export async function pages(built) {
  const load = (path) => import(pathToFileURL(join(built, path)).href)
  const modules = {
    api: await load('index.js'),
    log: await load('observe/log.js'),
    workerOptions: await load('worker/options.js'),
    duration: await load('core/duration.js'),
    program: await load('cli/program.js'),
    exits: await load('cli/exit-codes.js'),
  }
  return {
    'docs/reference/errors.md': errorsPage(modules),
    'docs/reference/options.md': await optionsPage(modules),
    'docs/reference/events.md': eventsPage(modules),
    'docs/reference/cli.md': cliPage(modules),
  }
}

function page(title, ...parts) {
  return `${[`# ${title}`, MADE, ...parts].join('\n\n')}\n`
}

/** Its columns stand below each other, as the formatter of the repository has it. */
function table(heads, rows) {
  const lines = [heads, ...rows].map((cells) => cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')))
  const widths = heads.map((_, column) => Math.max(3, ...lines.map((cells) => [...cells[column]].length)))
  const drawn = lines.map((cells) => cells.map((cell, column) => cell + ' '.repeat(widths[column] - [...cell].length)))
  const rule = widths.map((width) => '-'.repeat(width))
  return [drawn[0], rule, ...drawn.slice(1)].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function code(text) {
  return `\`${text}\``
}

// Errors.

function errorsPage({ api }) {
  return page(
    'Errors',
    'Everything that Leasehold throws on purpose is a `QueueError` with a `code`, and where they are known the `field` at fault and the `jobId`. Match on the code; messages may change. The `cause` is the error of the driver or the handler, where there is one.',
    table(
      ['code', 'meaning'],
      Object.entries(api.ERROR_CODES).map(([word, meaning]) => [code(word), meaning]),
    ),
  )
}

// Options.

/** Breaks every check. */
const WRONG = Symbol('wrong')

/**
 * The tables, where they stand in the source, and how to have an option refused. `ask` is given the options and has to
 * throw or reject.
 */
function optionTables({ api }) {
  const { connect, defineJob, worker } = api
  const kind = defineJob('reference')
  const handler = kind.handle(() => {})
  const onQueue = (use) => async (options) => {
    const queue = await connect('memory:')
    try {
      await use(queue, options)
    } finally {
      await queue.close()
    }
  }
  return [
    {
      title: '`defineJob(name, options)`',
      tables: [['src/core/kind.ts', 'KIND_OPTIONS']],
      ask: (options) => defineJob('reference', options),
    },
    {
      title: '`retry` of a kind',
      tables: [['src/core/policy.ts', 'KIND_RETRY_OPTIONS']],
      ask: (retry) => defineJob('reference', { retry }),
    },
    {
      title: '`retry.backoff`',
      text: 'Of a kind or of one job. A kind may give a function in place of it: `(attempt, error) => duration`.',
      tables: [['src/core/policy.ts', 'BACKOFF_OPTIONS']],
      ask: (backoff) => defineJob('reference', { retry: { backoff } }),
    },
    {
      title: '`queue.enqueue(kind, payload, options)`',
      text: 'Those of one job are also taken by `kind.with(payload, options)`, except `tx` and `storeTimeout`, which belong to a call.',
      tables: [
        ['src/core/choices.ts', 'JOB_CHOICES'],
        ['src/client/calls.ts', 'CALL'],
      ],
      ask: onQueue((queue, options) => queue.enqueue(kind, null, options)),
    },
    {
      title: '`queue.enqueueMany(items, options)` and `enqueueStream`',
      text: 'They hold for each item that does not say otherwise.',
      tables: [
        ['src/core/choices.ts', 'SHARED_CHOICES'],
        ['src/client/calls.ts', 'CALL'],
      ],
      ask: onQueue((queue, options) => queue.enqueueMany([], options)),
    },
    {
      title: '`retry` of one job',
      tables: [['src/core/policy.ts', 'JOB_RETRY_OPTIONS']],
      ask: onQueue((queue, retry) => queue.enqueue(kind, null, { retry })),
    },
    {
      title: '`connect(url, options)`',
      tables: [['src/connect.ts', 'CONNECT_OPTIONS']],
      ask: (options) => connect('memory:', options),
    },
    {
      title: '`log` of a connection',
      tables: [['src/connect.ts', 'LOG_OPTIONS']],
      ask: (log) => connect('memory:', { log }),
    },
    {
      title: '`worker(queue, handlers, options)`',
      tables: [['src/worker/options.ts', 'WORKER_OPTIONS']],
      ask: onQueue((queue, options) => worker(queue, [handler], options)),
    },
    {
      title: '`job.result(options)`',
      tables: [['src/client/job.ts', 'WAIT_OPTIONS']],
      ask: onQueue(async (queue, options) => (await queue.enqueue(kind)).result(options)),
    },
    {
      title: '`queue.list(options)` and `queue.jobs(options)`',
      tables: [['src/client/inspector.ts', 'LIST_OPTIONS']],
      ask: onQueue((queue, options) => queue.list(options)),
    },
    {
      title: '`queue.redrive(ids, options)`',
      tables: [['src/client/controller.ts', 'REDRIVE_OPTIONS']],
      ask: onQueue((queue, options) => queue.redrive([], options)),
    },
    {
      title: '`queue.deadGroups(options)`',
      tables: [['src/client/inspector.ts', 'DEAD_GROUP_OPTIONS']],
      ask: onQueue((queue, options) => queue.deadGroups(options)),
    },
    {
      title: 'The filter of `queue.redriveAll(filter, options)` and `queue.discardAll(filter, options)`',
      tables: [['src/client/filters.ts', 'DEAD_FILTER']],
      ask: onQueue((queue, filter) => queue.redriveAll(filter)),
    },
    {
      title: 'The filter of `queue.cancelAll(filter, options)`',
      tables: [['src/client/filters.ts', 'CANCEL_FILTER']],
      ask: onQueue((queue, filter) => queue.cancelAll(filter)),
    },
    {
      title: 'The filter of `queue.retryAll(filter, options)`',
      tables: [['src/client/filters.ts', 'RETRY_FILTER']],
      ask: onQueue((queue, filter) => queue.retryAll(filter)),
    },
    {
      title: 'The options of `redriveAll`, `discardAll`, `cancelAll` and `retryAll`',
      text: '`force` is of `redriveAll` alone.',
      tables: [['src/client/bulk-options.ts', 'REDRIVE_ALL_OPTIONS']],
      ask: onQueue((queue, options) => queue.redriveAll({ all: true }, options)),
    },
    {
      title: '`queue.drain(queue, options)`',
      tables: [['src/client/controller.ts', 'DRAIN_OPTIONS']],
      ask: onQueue((queue, options) => queue.drain('default', options)),
    },
    {
      title: '`queue.purge(queue, options)`',
      tables: [['src/client/controller.ts', 'PURGE_OPTIONS']],
      ask: onQueue((queue, options) => queue.purge('default', options)),
    },
  ]
}

/** Where the refusal of something wrong names one of several forms only. */
const ALSO = {
  'KIND_OPTIONS.retry': 'an object, see below',
  'KIND_RETRY_OPTIONS.backoff': 'an object, see below, or a function',
  'JOB_CHOICES.retry': 'an object, see below',
  'SHARED_CHOICES.retry': 'an object, see below',
  'JOB_RETRY_OPTIONS.backoff': 'an object, as that of a kind',
  'CONNECT_OPTIONS.log': 'true, false, a function, or an object, see below',
}

async function optionsPage(modules) {
  const parts = []
  for (const section of optionTables(modules)) parts.push(...(await optionSection(section, modules)))
  return page(
    'Options',
    'An option that does not exist is an error that names the nearest one, and so is a value that may not be; types say the same at compile time. A duration is a number of milliseconds or a text such as `"250ms"`, `"20s"`, `"15m"`, `"1.5h"`, `"30d"`.',
    ...parts,
  )
}

async function optionSection({ title, text = '', tables, ask }, modules) {
  const entries = tables.flatMap(([file, name]) => entriesOf(file, name))
  const rows = []
  for (const entry of entries) {
    const allowed = ALSO[`${tables[0][1]}.${entry.name}`] ?? entry.allowed ?? (await refusalOf(ask, entry.name))
    rows.push([code(entry.name), allowed, entry.doc + defaultText(entry, allowed, modules)])
  }
  return [`## ${title}`, ...(text === '' ? [] : [text]), table(['option', 'what it may be', 'meaning'], rows)]
}

/** Of a table whose docs do not tell the defaults: where the doc is text of its own, the default stands beside it. */
function defaultText({ name, besideDefault }, allowed, { workerOptions, duration }) {
  if (!besideDefault) return ''
  const value = workerOptions.WORKER_OPTIONS[name].default
  if (value === undefined) return ''
  return ` Default: ${allowed.startsWith('a duration') ? duration.formatDuration(value) : value}.`
}

/** What the code says may be given instead. */
async function refusalOf(ask, name) {
  try {
    await ask({ [name]: WRONG })
  } catch (error) {
    const { message } = error
    const asked = /; give (.*)$/.exec(message) ?? /; a name has (.*)$/.exec(message)
    if (asked === null) throw error
    return message.includes('a name has') ? `a name: ${asked[1]}` : shortened(asked[1])
  }
  throw new Error(`the option ${name} takes anything`)
}

/** How a duration is written is said once, above. */
function shortened(allowed) {
  return allowed.replace(/^a duration \(.*?\) from/, 'a duration from')
}

/** The entries of an option table in the source, in its order, those of tables spread into it included. */
function entriesOf(file, tableName) {
  const source = parsed(file)
  const literal = tableIn(source, tableName)
  return literal.properties.flatMap((property) => {
    if (ts.isSpreadAssignment(property)) return entriesOf(file, property.expression.getText(source))
    const doc = initializerOf(property.initializer, 'doc')
    const name = property.name.getText(source)
    return [
      {
        name,
        doc: doc === undefined ? commentOf(property) : doc.text,
        besideDefault: doc !== undefined,
        allowed: allowedByText(initializerOf(property.initializer, 'check')?.getText(source) ?? ''),
      },
    ]
  })
}

/** A bound on bytes is no part of the refusal of what is no text at all. */
function allowedByText(check) {
  const bytes = /^text\(([\d_]+)\)/.exec(check)?.[1]
  if (bytes !== undefined) return `a text of 1 to ${Number(bytes.replaceAll('_', '')).toLocaleString('en')} bytes`
  return check === 'idempotencyKey' ? 'a text of 1 to 1,024 bytes' : undefined
}

function tableIn(source, name) {
  let found
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) && node.name.getText(source) === name) {
      let value = node.initializer
      while (value && !ts.isObjectLiteralExpression(value)) value = value.expression
      found = value
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  if (found === undefined) throw new Error(`${source.fileName} has no table ${name}`)
  return found
}

function initializerOf(literal, name) {
  if (!ts.isObjectLiteralExpression(literal)) return undefined
  return literal.properties.find((property) => property.name?.text === name)?.initializer
}

function commentOf(node) {
  const comment = ts.getJSDocCommentsAndTags(node)[0]?.comment
  if (comment === undefined) throw new Error(`an option has no comment: ${node.getText()}`)
  return (typeof comment === 'string' ? comment : ts.getTextOfJSDocComment(comment)).replace(/\s+/g, ' ')
}

const sources = new Map()

function parsed(file) {
  if (!sources.has(file)) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    sources.set(file, ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true))
  }
  return sources.get(file)
}

// Events.

/** A sentence for each event. One that is missing here, or is no event any more, is an error. */
const EVENT_MEANINGS = {
  'job.enqueued': 'A job was stored, after its commit. Not told for jobs in a transaction of yours.',
  'job.refused': 'A job was not stored, or nobody knows: the reason says which.',
  'job.duplicate': 'An enqueue met its idempotency key; nothing new was stored.',
  'job.cancelled': 'A job ended as cancelled.',
  'job.cancel requested': 'Somebody wants a running job cancelled; its signal fires within a beat.',
  'job.retried': 'An operator made a delayed or retrying job ready.',
  'job.redriven': 'A dead letter was brought back.',
  'job.discarded': 'A dead letter was deleted by somebody.',
  'job.promoted': 'A delayed or retrying job came due and is ready.',
  'job.expired': 'A job had not started in time.',
  'job.claimed': 'A worker took a job under a lease.',
  'job.started': 'Its handler starts.',
  'job.progressed': 'Its handler told of progress.',
  'job.completed': 'Its handler returned, and the store has confirmed it.',
  'job.failed': 'An attempt threw, was rejected or asked for a retry; `retryInMs` is absent when it was the last.',
  'job.timed out': 'An attempt ran longer than its timeout.',
  'job.snoozed': 'The handler wants to come back later; no attempt is used.',
  'job.given back': 'A claimed job went back to its place; no attempt is used.',
  'job.crashed': 'A job of a dead worker was taken over.',
  'job.dead': 'A job became a dead letter.',
  'job.quarantined': 'It did so because workers died while it ran alone.',
  'job.lost': 'A lease ended before its job did: what comes of that run changes nothing.',
  'job.log': 'A handler logged something; the level is its own.',
  'worker.started': 'A worker started.',
  'worker.draining': 'A worker takes no new jobs and will stop.',
  'worker.stopped': 'A worker is down.',
  'worker.written off': 'The store has given up a worker that was silent for a lease; it goes on under a new identity.',
  'worker.leases lost': 'A worker has had no beat confirmed for a whole lease; its handlers are stopped.',
  'worker.loop blocked': 'The event loop did not turn for over a second.',
  'worker.slot stuck': 'The code of an ended attempt goes on and keeps its slot.',
  'worker.took over': 'A worker took over what a dead one held.',
  'store.unavailable': 'An operation of a worker failed and is tried again.',
  'store.recovered': 'It works again.',
  'queue.paused': 'A queue was paused by this connection.',
  'queue.resumed': 'A pause or a drain was ended by this connection.',
  'queue.draining': 'A queue refuses new jobs.',
  'queue.purged': 'What waited in a queue was deleted.',
}

function eventsPage({ log }) {
  const events = eventsIn(parsed('src/observe/events.ts'))
  const known = new Set(events.map(({ type }) => type))
  const gone = Object.keys(EVENT_MEANINGS).find((type) => !known.has(type))
  if (gone !== undefined) throw new Error(`there is no event "${gone}" any more`)
  return page(
    'Events',
    'What happens is told as events, in the process where it happens. `connect(url, { log: true })` writes each as a line of JSON on stderr, `{ log: { level } }` fewer or more of them, and `{ log: (event) => … }` hands them to you. A listener that throws changes nothing.',
    'Job events carry `jobId`, `kind` and `queue`, and where they apply `worker` (its id) and `attempt`. Names that end in `Ms` are milliseconds.',
    table(
      ['event', 'level', 'meaning', 'and it carries'],
      events.map(({ type, fields, ofJob }) => {
        const level = type === 'job.log' ? 'its own' : log.EVENT_LEVELS[type]
        const meaning = EVENT_MEANINGS[type]
        if (meaning === undefined || level === undefined) throw new Error(`the event "${type}" says nothing of itself`)
        const carries = fields.filter((field) => !ofJob || field !== 'type').map(code)
        return [code(type), level, meaning, carries.join(', ')]
      }),
    ),
  )
}

/** The members of the union, in order: types and the names of their own fields. */
function eventsIn(source) {
  const union = source.statements.find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === 'QueueEvent')
  return union.type.types.flatMap((member) => {
    const parts = membersOf(member)
    const literals = parts.filter(ts.isTypeLiteralNode)
    const fields = literals.flatMap((literal) => literal.members)
    const type = fields.find((field) => field.name.getText(source) === 'type').type
    const names = fields.map(fieldText(source)).filter((name) => name !== 'type')
    const types = ts.isUnionTypeNode(type) ? type.types : [type]
    return types.map((one) => ({ type: one.literal.text, fields: names, ofJob: parts.length > literals.length }))
  })
}

function membersOf(node) {
  if (ts.isParenthesizedTypeNode(node)) return membersOf(node.type)
  return ts.isIntersectionTypeNode(node) ? node.types.flatMap(membersOf) : [node]
}

function fieldText(source) {
  return (field) => field.name.getText(source) + (field.questionToken === undefined ? '' : '?')
}

// The command line.

function cliPage({ program, exits }) {
  const terminal = { json: false, verbose: false, answer() {}, note() {}, paint: (_, text) => text }
  const root = program.program(terminal, () => {})
  return page(
    'Command line',
    '`npx leasehold COMMAND`, or `leasehold COMMAND` where it is installed globally. Answers go to stdout, everything else to stderr.',
    '## Options of every command',
    optionsOf(root),
    ...commandsOf(root, []),
    '## Exit codes',
    table(
      ['code', 'meaning'],
      exits
        .exitCodeHelp()
        .split('\n')
        .slice(1)
        .map((line) => /^ *(\d+) +(.*)$/.exec(line).slice(1)),
    ),
  )
}

function commandsOf(parent, above) {
  return parent.commands.flatMap((command) => {
    const words = [...above, command.name()]
    if (command.commands.length > 0) return commandsOf(command, words)
    const given = command.registeredArguments.map(argumentText).join(' ')
    const parts = [
      `## \`leasehold ${words.join(' ')}${given === '' ? '' : ` ${given}`}\``,
      sentence(command.description()),
    ]
    const described = command.registeredArguments.filter(({ description }) => description)
    if (described.length > 0)
      parts.push(described.map((argument) => `- ${code(argumentText(argument))}: ${argument.description}`).join('\n'))
    return command.options.length > 0 ? [...parts, optionsOf(command)] : parts
  })
}

function argumentText(argument) {
  const word = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${word}>` : `[${word}]`
}

function optionsOf(command) {
  return table(
    ['option', 'meaning'],
    command.options.map(({ flags, description, defaultValue }) => {
      const known = typeof defaultValue === 'string' || typeof defaultValue === 'number'
      return [code(flags), known ? `${description} (default: ${defaultValue})` : description]
    }),
  )
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const made = await pages(join(ROOT, 'dist'))
  mkdirSync(join(ROOT, 'docs/reference'), { recursive: true })
  for (const [path, text] of Object.entries(made)) writeFileSync(join(ROOT, path), text)
  console.log(`made ${Object.keys(made).join(', ')}`)
}
