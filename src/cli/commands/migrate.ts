/** `leasehold migrate`: makes the schema, checks it, or prints its SQL and the SQL of rights. Called by the declarations in syntax/. */
import { connect } from '../../connect.js'
import { QueueError } from '../../core/errors.js'
import { partitionsIn } from '../../core/partition-list.js'
import type { SchemaRole } from '../../storage/postgres/index.js'
import type { Answer } from '../answer.js'
import { CommandError } from '../failure.js'
import type { Invocation, StoreWanted } from '../invocation.js'

interface Choice {
  check?: true
  print?: true
  printGrants?: string
  to?: string
}

export async function migrate(invocation: Invocation, choice: Choice): Promise<Answer> {
  const { check, print, printGrants, to } = choice
  if ([check, print, printGrants].filter((each) => each !== undefined).length > 1)
    throw new CommandError('USAGE', 'give one of --check, --print and --print-grants')
  if ((printGrants === undefined) !== (to === undefined))
    throw new CommandError('USAGE', 'give --print-grants and --to together: which rights, and the role that gets them')
  if (printGrants !== undefined) return grants(invocation, printGrants, to!)
  if (print) return printed(invocation)
  const missing = await missingIn(invocation, check ? 'there' : 'may be made')
  if (check && missing !== undefined) throw missing
  return missing === undefined ? answer('up to date', []) : answer('migrated', await applied(invocation))
}

async function printed({ schema }: Invocation): Promise<Answer> {
  const { migrationSql } = await import('../../storage/postgres/index.js')
  const sql = migrationSql(schema === undefined ? {} : { schema })
  return { document: { sql }, text: () => sql }
}

async function grants({ schema }: Invocation, rights: string, to: string): Promise<Answer> {
  const { grantSql } = await import('../../storage/postgres/index.js')
  // What is none of the roles is refused there, with those that are.
  const sql = grantSql({ ...(schema === undefined ? {} : { schema }), role: rights as SchemaRole, to })
  return { document: { sql }, text: () => sql }
}

function answer(status: 'up to date' | 'migrated', done: string[]): Answer {
  const text = status === 'up to date' ? 'the schema is up to date' : ['migrated:', ...done].join('\n  ')
  return { document: { status, applied: done }, text: () => text }
}

/** Why the schema cannot be used as it is; undefined when it can. Finds the store and its driver, or says why not. */
async function missingIn(invocation: Invocation, wanted: StoreWanted): Promise<QueueError | undefined> {
  try {
    const { partitions } = (await invocation.store({ migrate: false }, wanted)).connection.storage
    // One that does not answer may be missing anything.
    for (const { trouble } of partitions?.all ?? []) if (trouble !== undefined) throw trouble
    return undefined
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (error instanceof QueueError && (code === 'SCHEMA_MISSING' || code === 'SCHEMA_OUTDATED')) return error
    throw error
  }
}

async function applied({ url, schema }: Pick<Invocation, 'url' | 'schema'>): Promise<string[]> {
  const list = partitionsIn(url)
  if (list !== undefined) {
    const all: string[] = []
    for (const { name, ...one } of list.partitions)
      all.push(...(await applied({ url: one.url, schema: one.schema ?? schema })).map((step) => `${name}: ${step}`))
    return all
  }
  const named = schema === undefined ? {} : { schema }
  if (!/^postgres(ql)?:/i.test(url)) {
    // Another kind of store is opened by connect alone, which does it and does not tell the steps.
    const queue = await connect(url, { migrate: true, ...named })
    await queue.close()
    return ['all there is']
  }
  const { openPostgres } = await import('../../storage/postgres/index.js')
  const storage = openPostgres({ url, ...named })
  try {
    const { applied: done } = await storage.setup.migrate()
    // A schema that a later version made is not brought down to this one: it is refused.
    await storage.setup.check()
    return done
  } finally {
    await storage.close()
  }
}
