/** How the stores of a queue are written down. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { partitionsIn } from '../../src/core/partition-list.js'

const refused = (given: unknown, field: string): void => {
  assert.throws(() => partitionsIn(given), { code: 'INVALID_OPTION', field })
}

test('a line of text says the same as an object', () => {
  const written =
    'by=tenant, one=postgres://u:p,w@db1/app, postgres://u:p@db2:5433/app?sslmode=require,db2=postgres://db2/app#other,draining=one'
  const list = partitionsIn(written)
  assert.deepEqual(list, {
    by: 'tenant',
    partitions: [
      { name: 'one', url: 'postgres://u:p,w@db1/app', schema: undefined, draining: true },
      { name: 'db2:5433/app', url: 'postgres://u:p@db2:5433/app?sslmode=require', schema: undefined, draining: false },
      { name: 'db2', url: 'postgres://db2/app', schema: 'other', draining: false },
    ],
  })
  const partitions = [
    { name: 'one', url: 'postgres://u:p,w@db1/app', draining: true },
    'postgres://u:p@db2:5433/app?sslmode=require',
    { name: 'db2', url: 'postgres://db2/app', schema: 'other' },
  ]
  assert.deepEqual(partitionsIn({ by: 'tenant', partitions }), list)
})

test('one URL is one store, whatever stands in it', () => {
  for (const url of [
    'postgres://u:p@db/app',
    'postgres://h1,h2/app?a=b,c=d',
    'memory:',
    'embedded:./a,b',
    'nonsense',
    '',
  ])
    assert.equal(partitionsIn(url), undefined, url)
})

test('names come of host, path and schema, never of user and password', () => {
  const names = (given: unknown[]): string[] =>
    partitionsIn({ by: 'kind', partitions: given })!.partitions.map(({ name }) => name)
  const url = 'postgres://user:secret@db/app'
  assert.deepEqual(names([url, { url, schema: 'other' }, 'memory:', 'embedded:./data']), [
    'db/app',
    'db/app/other',
    'memory',
    './data',
  ])
})

test('a list that means nothing is refused by name', () => {
  const two = ['postgres://a/x', 'postgres://b/x']
  refused({ partitions: two }, 'by')
  refused({ by: 'color', partitions: two }, 'by')
  refused({ by: 'kind' }, 'partitions')
  refused({ by: 'kind', partitions: [] }, 'partitions')
  refused({ by: 'kind', partitions: ['postgres://a/x', 'postgres://u@a/x'] }, 'partitions')
  refused({ by: 'kind', partitions: [{ url: 'postgres://a/x', draining: true }] }, 'partitions')
  refused({ by: 'kind', partitions: [{ url: 'postgres://a/x', name: 'a=b' }] }, 'partitions[0].name')
  refused({ by: 'kind', partitions: [{ name: 'a' }] }, 'partitions[0].url')
  refused('by=kind,a=postgres://a/x,draining=c', 'draining')
  refused('postgres://a/x,postgres://b/x', 'by')
  assert.throws(() => partitionsIn({ by: 'kind', partition: two }), { code: 'UNKNOWN_OPTION' })
})
