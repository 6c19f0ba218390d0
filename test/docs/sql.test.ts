/** The SQL that the documents show runs on the schema as the migrations make it. */
import assert from 'node:assert/strict'
import test from 'node:test'
import pg from 'pg'
import { connect } from '../../src/index.js'
import { serverUrl } from '../support/postgres.js'
import { blocksOf, documents } from './markdown.js'

const blocks = documents()
  .flatMap(blocksOf)
  .filter(({ words }) => words[0] === 'sql')

async function once(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

test('every statement in the documents runs', async () => {
  assert.ok(blocks.length > 0)
  // The documents name the schema as it is by default, so a database of its own is needed.
  const database = `docs_sql_${process.pid}`
  const url = new URL(serverUrl())
  url.pathname = `/${database}`
  await once(serverUrl(), `create database ${database}`)
  try {
    const queue = await connect(url.href)
    await queue.close()
    for (const { code } of blocks) await once(url.href, code)
  } finally {
    await once(serverUrl(), `drop database ${database} with (force)`)
  }
})
