/** The page of races says what is played: its tables are made from the races, every pair is played or explained, every test is named. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import {
  EXPLAINED,
  key,
  meetingOf,
  metPairs,
  OPERATIONS,
  OWN,
  ownPairs,
  playedOrders,
} from '../postgres/races/matrix.js'
import { ROOT, sourceFiles } from '../support/source.js'
import { remade, unplayed } from './races-page.js'

/** The names of tests, as patterns where a part of them is filled in. Those of the tables have no text of their own. */
function namePatterns(): RegExp[] {
  return sourceFiles('test/postgres/races').flatMap(({ text }) =>
    [...text.matchAll(/^ *test\((['`])(.+?)\1, async/gm)].map(([, , name]) => pattern(name!)),
  )
}

function pattern(name: string): RegExp {
  const plain = name.split(/\$\{.+?\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${plain.join('.+')}$`)
}

test('docs/races.md is up to date; "node build/test/docs/write-races.js" makes it anew', () => {
  const page = readFileSync(join(ROOT, 'docs/races.md'), 'utf8')
  assert.equal(page, remade(page))
})

test('every pair of operations that take the same rows is played in each order, or it is said why nothing can happen', () => {
  const played = playedOrders()
  assert.deepEqual(unplayed(played), [])
  const missing = ['cancel first, take over second', 'claim first, claim second']
  for (const order of missing) assert(played.delete(order))
  assert.deepEqual(unplayed(played).toSorted(), missing)
})

test('what is explained is of operations that take the same rows and are not played', () => {
  const played = new Set([...metPairs(), ...ownPairs()])
  for (const { pairs } of EXPLAINED)
    for (const pair of pairs) assert.deepEqual([meetingOf(pair), played.has(key(pair))], ['takes', false], key(pair))
})

test('the matrix names the tests of the races, all of them and no other', () => {
  const patterns = namePatterns()
  const names = Object.keys(OWN)
  assert.ok(patterns.length > 0)
  assert.deepEqual(
    names.filter((name) => !patterns.some((one) => one.test(name))),
    [],
    'listed, and nowhere played',
  )
  assert.deepEqual(
    patterns.filter((one) => !names.some((name) => one.test(name))).map(String),
    [],
    'played, and not listed',
  )
})

test('the matrix knows every operation that is played', () => {
  const known = new Set(Object.keys(OPERATIONS))
  const named = [...metPairs(), ...ownPairs()].flatMap((pair) => pair.split(' × '))
  assert.deepEqual(
    named.filter((one) => !known.has(one)),
    [],
  )
})
