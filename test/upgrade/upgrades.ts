/** What an upgrade from each kept release owes, on a server of a major version. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrationSql, openPostgres, type PostgresStorage } from '../../src/storage/postgres/index.js'
import { serverUrl } from '../support/postgres.js'
import { catalogOf } from './catalog.js'
import { Clients, PRESENT } from './clients.js'
import { factsOf, loadRelease, RELEASES, type ReleaseClient, releaseClient } from './release.js'

type Places = Map<string, string>

export function upgradesOn(major: 18 | 15): void {
  let admin: pg.Client
  let counter = 0

  before(async () => {
    admin = new pg.Client(serverUrl(major))
    await admin.connect()
  })
  after(() => admin.end())

  const sql = async (text: string, values?: unknown[]) => (await admin.query(text, values)).rows

  /** A schema as the release left it, gone after the test. */
  async function upgraded(release: string, agoMs: number, run: (upgrade: Upgrade) => Promise<void>): Promise<void> {
    counter += 1
    const schema = `upgrade_${process.pid}_${counter}`
    await loadRelease(release, schema, { major, agoMs })
    const upgrade = new Upgrade(admin, serverUrl(major), schema, releaseClient(release))
    try {
      await run(upgrade)
    } finally {
      await upgrade.end()
    }
  }

  for (const release of RELEASES) {
    test(`B128: ${release} becomes this version with its workers and producers at work; no job is lost or doubled`, () =>
      upgraded(release, 70_000, underWork))

    test(`B128: what ${release} stored is read as it was after the upgrade, in every state`, () =>
      upgraded(release, 0, async (upgrade) => {
        const before = await upgrade.rows()
        assert.deepEqual(counted(before.map(({ state }) => state as string)), factsOf(release).jobs)
        await upgrade.storage.setup.migrate()
        const after = await upgrade.rows()
        assert.deepEqual(after, before)
        const views = await upgrade.storage.inspect.get(before.map(({ id }) => id as string))
        assert.deepEqual(
          views.map((view) => view?.state),
          before.map(({ state }) => state),
        )
      }))

    test(`B128: a schema of ${release} that was upgraded is the same as a new one`, () =>
      upgraded(release, 0, async (upgrade) => {
        await upgrade.storage.setup.migrate()
        await isAsNew(upgrade.schema)
      }))

    test(`B128: the functions that ${release} calls are there after the upgrade, as it calls them`, () =>
      upgraded(release, 0, async ({ schema, storage }) => {
        const functions = async () =>
          (
            await sql(
              `select p.oid::regprocedure || ' ' || pg_get_function_result(p.oid) as said from pg_proc p where pronamespace = $1::regnamespace`,
              [schema],
            )
          ).map(({ said }) => said as string)
        const before = await functions()
        await storage.setup.migrate()
        const now = new Set(await functions())
        assert.ok(before.length > 30)
        assert.deepEqual(
          before.filter((each) => !now.has(each)),
          [],
        )
      }))

    test(`B129: what is printed from the version of ${release} on does the same`, () =>
      upgraded(release, 0, async ({ schema, storage }) => {
        const printed = migrationSql({ schema, from: factsOf(release).version })
        // The parts that stand in no transaction are marked, and are alone in what is sent.
        for (const part of printed.split(/(?<=^create index concurrently .*;)\n|\n(?=-- .*stand in no transaction)/m))
          await admin.query(part)
        assert.deepEqual(await storage.setup.migrate(), { applied: [] })
        await isAsNew(schema)
      }))

    test(`B128: ${release} is refused by a schema that serves newer clients only, and leaves it as it is`, () =>
      upgraded(release, 0, async ({ schema, storage, old }) => {
        await storage.setup.migrate()
        await admin.query(
          `update ${schema}.migration set oldest_client = 99 where version = (select max(version) from ${schema}.migration)`,
        )
        const before = await catalogOf(sql, schema)
        const client = (await import(old.entry)) as typeof import('../../src/index.js')
        for (const migrate of [true, false])
          await assert.rejects(client.connect(serverUrl(major), { schema, migrate }), { code: 'SCHEMA_OUTDATED' })
        assert.deepEqual(await catalogOf(sql, schema), before)
      }))
  }

  test('B129: what is printed makes the schema in one transaction of another tool', async () => {
    counter += 1
    const schema = `printed_${process.pid}_${counter}`
    const printed = migrationSql({ schema }).replace(/^(begin|commit);$/gm, '')
    await admin.query(`begin; ${printed}; commit`)
    try {
      await isAsNew(schema)
    } finally {
      await admin.query(`drop schema ${schema} cascade`)
    }
  })

  /** In all that the server knows of it. */
  async function isAsNew(schema: string): Promise<void> {
    const fresh = `fresh_${schema}`
    const storage = openPostgres({ url: serverUrl(major), schema: fresh })
    try {
      await storage.setup.migrate()
      assert.deepEqual(await catalogOf(sql, schema), await catalogOf(sql, fresh))
      assert.deepEqual(await storage.setup.drift(), [])
    } finally {
      await storage.close()
      await admin.query(`drop schema ${fresh} cascade`)
    }
  }
}

/** The old ones start first, see the schema change under them, and are joined by a new one before they go. */
async function underWork(upgrade: Upgrade): Promise<void> {
  const { clients, storage, old } = upgrade
  const kept = await upgrade.places()
  const producer = await clients.start({ name: 'producer', entry: old.entry, role: 'producer' })
  const worker = await clients.start({ name: 'old', entry: old.entry, role: 'worker' })
  await clients.more('old ran', 40)
  const beats = await upgrade.beats()
  const { applied } = await storage.setup.migrate()
  assert.notDeepEqual(applied, [])
  const known = new Set(clients.after('producer sent'))
  await upgrade.until(() => clients.after('old ran').filter((line) => !known.has(line.split(' ')[0]!)).length >= 40)
  await upgrade.until(async () => (await upgrade.beats()) > beats + 2)

  // A process of the old version that is started again brings nothing back.
  const digest = await upgrade.digest()
  const again = await clients.start({ name: 'again', entry: old.entry, role: 'worker', connect: { migrate: true } })
  const present = await clients.start({ name: 'present', entry: PRESENT, role: 'worker' })
  await Promise.all([clients.more('again ran', 20), clients.more('present ran', 20)])
  assert.equal(await upgrade.digest(), digest)
  await clients.stop(producer)
  await clients.stop(worker)
  await clients.stop(again)
  await upgrade.until(async () => (await upgrade.startable()) === 0)
  await clients.stop(present)
  await nothingLostOrDoubled(upgrade, kept)
}

async function nothingLostOrDoubled({ clients, places, rows }: Upgrade, kept: Places): Promise<void> {
  const sent = clients.after('producer sent')
  const runs = ['old', 'again', 'present'].flatMap((name) => clients.after(`${name} ran`))
  const now = await places()
  assert.equal(now.size, (await rows()).length, 'no job is in two places')
  const ran = counted(runs.map((line) => line.split(' ')[0]!))
  assert.deepEqual(
    sent.filter((id) => ran[id] !== 1 || now.get(id) !== 'completed'),
    [],
    'each job that was enqueued has run once',
  )
  const missing = [...kept].filter(([id]) => !now.has(id))
  assert.deepEqual(missing, [], 'each job of the release is still there')
  const expected = [...kept].map(([id, state]) => [id, fateOf(state, now.get(id)!)])
  assert.deepEqual(
    expected.filter(([, fate]) => fate !== 'as it should be'),
    [],
  )
  for (const [id] of kept) assert.ok((ran[id] ?? 0) <= 1, `job ${id} of the release ran ${ran[id]} times`)
  for (const name of ['old', 'again', 'present'])
    assert.deepEqual(clients.after(`${name} event`).filter(isTrouble), [], `${name} had no trouble`)
}

/** Waiting ones end where somebody may take them; held ones by their take-over; nothing else moves. */
function fateOf(before: string, now: string): string {
  const good: Record<string, string[]> = {
    // Paused, of a kind that no worker knows.
    ready: ['completed', 'ready'],
    delayed: ['delayed', 'completed'],
    retrying: ['retrying', 'completed'],
    running: ['completed', 'cancelled', 'dead'],
  }
  return (good[before] ?? [before]).includes(now) ? 'as it should be' : `${before}, then ${now}`
}

function isTrouble(event: string): boolean {
  return /"(?:store\.|worker\.(?:leases lost|written off))/.test(event)
}

function counted(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

class Upgrade {
  readonly storage: PostgresStorage
  readonly clients: Clients

  constructor(
    private readonly admin: pg.Client,
    url: string,
    readonly schema: string,
    readonly old: ReleaseClient,
  ) {
    this.storage = openPostgres({ url, schema })
    this.clients = new Clients({ url, schema })
  }

  /** All that the view shows of jobs. */
  readonly rows = async (): Promise<Record<string, unknown>[]> =>
    (
      await this.admin.query(
        `select id, state, queue, kind, priority, enqueued, due, started, ended, worker, reason, payload::text, spec::text, history::text, result::text
          from ${this.schema}.job order by id, state`,
      )
    ).rows

  readonly places = async (): Promise<Places> =>
    new Map((await this.rows()).map(({ id, state }) => [id as string, state as string]))

  /** Of all workers. */
  async beats(): Promise<number> {
    return this.number(`select sum(n)::int as n from ${this.schema}.worker`)
  }

  /** Jobs that somebody here may run, and those that dead workers hold. */
  async startable(): Promise<number> {
    return this.number(`select count(*)::int as n from ${this.schema}.job where kind <> 'nobody' and queue <> 'paused'
      and (state in ('ready', 'running') or due < clock_timestamp() + interval '5 s')`)
  }

  async digest(): Promise<string> {
    const { rows } = await this.admin.query(`select digest from ${this.schema}.functions`)
    return rows[0].digest
  }

  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isSo())) await sleep(50)
  }

  async end(): Promise<void> {
    await this.clients.end()
    await this.storage.close()
    this.old.remove()
    await this.admin.query(`drop schema ${this.schema} cascade`)
  }

  private async number(text: string): Promise<number> {
    return (await this.admin.query(text)).rows[0].n
  }
}
