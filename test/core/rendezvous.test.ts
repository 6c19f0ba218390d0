/** Which of several stores a job goes to: the same for ever, evenly, and moving as little as can be. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Rendezvous, routeOf } from '../../src/core/rendezvous.js'

const KEYS = Array.from({ length: 20_000 }, (_, n) => `tenant customer-${n}`)

/** Made once by this very code: a release that answers otherwise would send the jobs of a tenant to another store. */
const VECTORS: readonly [route: string, names: string[], home: string][] = [
  ['tenant acme', ['a', 'b'], 'b'],
  ['tenant acme', ['a', 'b', 'c'], 'b'],
  ['kind mail.send', ['db1.example/app', 'db2.example/app', 'db3.example/app'], 'db1.example/app'],
  ['key mail.send welcome:1', ['one', 'two', 'three'], 'two'],
  ['tenant globex', ['one', 'two', 'three'], 'two'],
  ['tenant initech', ['one', 'two', 'three'], 'three'],
  ['id 01890a5d-ac96-774b-bcce-b302099a8057', ['one', 'two', 'three', 'four'], 'one'],
  ['tenant Zürich 🏔', ['one', 'two', 'three', 'four', 'five'], 'four'],
  ['', ['one', 'two'], 'one'],
]

test('a key has the same home in every release', () => {
  for (const [route, names, home] of VECTORS)
    assert.equal(names[new Rendezvous(names).choose(route)], home, `${route} among ${names.join(', ')}`)
})

test('the order of the list decides nothing', () => {
  fc.assert(
    fc.property(fc.string(), fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 8 }), (route, names) => {
      const turned = [...names].reverse()
      assert.equal(names[new Rendezvous(names).choose(route)], turned[new Rendezvous(turned).choose(route)])
    }),
  )
})

test('stores get even shares of the keys', () => {
  for (const count of [2, 3, 5, 8]) {
    const rendezvous = new Rendezvous(Array.from({ length: count }, (_, n) => `db${n}.example/app`))
    const shares = new Array<number>(count).fill(0)
    for (const key of KEYS) shares[rendezvous.choose(key)]! += 1
    const even = KEYS.length / count
    // Five standard deviations.
    const bound = 5 * Math.sqrt(even)
    for (const share of shares) assert.ok(Math.abs(share - even) < bound, `${share} of ${KEYS.length}, not ${even}`)
  }
})

test('a store that is added takes its share, and nothing moves between the others', () => {
  const before = new Rendezvous(['a', 'b', 'c'])
  const after = new Rendezvous(['a', 'b', 'c', 'd'])
  let moved = 0
  for (const key of KEYS) {
    const home = after.choose(key)
    if (home === 3) moved += 1
    else assert.equal(home, before.choose(key))
  }
  assert.ok(moved > KEYS.length * 0.23 && moved < KEYS.length * 0.27, `${moved}`)
})

test('what a drained store had goes where it would without it, to all of the others', () => {
  const all = new Rendezvous(['a', 'b', 'c', 'd'])
  const rest = new Rendezvous(['a', 'b', 'd'])
  const heirs = new Set<number>()
  for (const key of KEYS) {
    const home = all.choose(key, (index) => index !== 2)
    assert.equal(['a', 'b', 'c', 'd'][home], ['a', 'b', 'd'][rest.choose(key)])
    if (all.choose(key) === 2) heirs.add(home)
    else assert.equal(home, all.choose(key))
  }
  assert.deepEqual([...heirs].sort(), [0, 1, 3])
  assert.equal(
    all.choose('x', () => false),
    -1,
  )
})

test('repeats of an idempotency key meet, with or without a tenant; a job without either goes by its id', () => {
  const job = { id: 'i', kind: 'k', spec: {} }
  assert.equal(routeOf(job, 'kind'), 'kind k')
  assert.equal(routeOf(job, 'tenant'), 'id i')
  assert.equal(routeOf(job, 'idempotency key'), 'id i')
  const keyed = { ...job, spec: { idempotencyKey: 'x' } }
  for (const by of ['tenant', 'idempotency key'] as const)
    assert.equal(routeOf(keyed, by), routeOf({ ...keyed, id: 'another' }, by))
  assert.equal(routeOf({ ...keyed, spec: { idempotencyKey: 'x', tenant: 't' } }, 'tenant'), 'tenant t')
})
