/** What is printed cannot drive a terminal, and what scripts read stays what it was. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveBlock } from '../../src/cli/live-block.js'
import { paintFor } from '../../src/cli/paint.js'
import { printable, printableLines, safeJson } from '../../src/cli/printable.js'
import { table } from '../../src/cli/table.js'
import { ago } from '../../src/cli/when.js'
import { cutToWidth, widthOf, wrapped } from '../../src/cli/width.js'

const NASTY = 'a\u001b[31mb\u0007\u009b2J\u202e\u200b\u2028\ud800\u007f\0\r\nc\td'
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u2028\u202e]|\p{Surrogate}/u
const plain = paintFor({ isTTY: false }, {})

test('control characters, hidden ones and lone surrogates are shown as escapes', () => {
  assert.doesNotMatch(printable(NASTY), UNSAFE)
  assert.match(
    printable(NASTY),
    /^a\\u001b\[31mb\\u0007\\u009b2J\\u202e\\u200b\\u2028\\ud800\\u007f\\u0000\\r\\nc\\td$/,
  )
  assert.equal(printableLines('a\n\tb\r'), 'a\n\tb\\r')
  assert.equal(printable('日本語 😀 é'), '日本語 😀 é')
})

test('JSON is safe and still means the same', () => {
  const value = { [NASTY]: [NASTY, 1, null, '日本語 😀'] }
  for (const indent of [undefined, 2]) {
    assert.doesNotMatch(safeJson(value, indent), UNSAFE)
    assert.deepEqual(JSON.parse(safeJson(value, indent)), value)
  }
})

test('a table fits its terminal, and is whole where there is none', () => {
  const columns = [
    { head: 'ID', cell: ({ id }: { id: string; text: string }) => id },
    { head: 'TEXT', cell: ({ text }: { text: string }) => text, flexible: true as const },
    { head: 'WIDE', cell: () => 'only there', fromWidth: 100 },
  ]
  const rows = [{ id: 'one', text: 'x'.repeat(300) }]
  const narrow = table(columns, rows, { width: 60, paint: plain })
  for (const line of narrow.split('\n')) assert.ok(line.length <= 60, line)
  assert.doesNotMatch(narrow, /WIDE/)
  assert.match(narrow, /x…$/m)
  const whole = table(columns, rows, { width: undefined, paint: plain })
  assert.match(whole, /x{300}/)
  assert.match(whole, /only there/)
})

test('a table of wide characters fits, too', () => {
  const columns = [
    { head: 'ID', cell: ({ id }: { id: string; text: string }) => id },
    { head: 'TEXT', cell: ({ text }: { text: string }) => text, flexible: true as const },
  ]
  const drawn = table(columns, [{ id: '一二三', text: '日本語のとても長い文章です'.repeat(9) }], {
    width: 50,
    paint: plain,
  })
  for (const line of drawn.split('\n')) assert.ok(widthOf(line) <= 50, line)
})

test('where the columns do not fit they become cards, and nothing is left out', () => {
  const id = '01a22b87-3eaf-7e61-812a-8a74513915dc'
  const columns = [
    { head: 'STATE', cell: () => 'dead: rejected' },
    { head: 'ID', cell: () => id },
    { head: 'ABOUT', cell: ({ about }: { about: string }) => about, flexible: true as const },
  ]
  const drawn = table(columns, [{ about: 'x'.repeat(100) }, { about: '' }], { width: 40, paint: plain })
  for (const line of drawn.split('\n')) assert.ok(line.length <= 40, line)
  assert.equal(drawn.split(id).length, 3)
  assert.match(drawn, /^STATE {2}dead: rejected$/m)
  assert.match(drawn, /^ABOUT {2}x+…$/m)
  assert.equal(drawn.match(/ABOUT/g)!.length, 1, 'what is empty takes no line')
})

test('the width of text is what a terminal makes of it', () => {
  for (const [text, width] of [
    ['abc', 3],
    ['日本語', 6],
    ['é', 1],
    ['e\u0301', 1],
    ['한국어', 6],
    ['😀', 2],
    ['ﾊﾝｶｸ', 4],
    ['\u001b[31mred\u001b[39m', 3],
  ] as const)
    assert.equal(widthOf(text), width, text)
  assert.equal(cutToWidth('日本語', 6), '日本語')
  assert.equal(cutToWidth('日本語', 5), '日本…')
  assert.equal(cutToWidth('日本語', 4), '日…')
  assert.equal(cutToWidth('\u001b[31mabcdef\u001b[39m', 4), '\u001b[31mabc…\u001b[39m')
  assert.deepEqual(wrapped('one two three', 7), ['one two', 'three'])
  assert.deepEqual(wrapped('unbreakable', 4), ['unbreakable'])
})

test('a redrawn block is wiped out whole, and never taller or wider than the terminal', () => {
  let drawn = ''
  const terminal = {
    draw: (text: string) => {
      drawn += text
    },
    noteWidth: () => 20,
    noteHeight: () => 5,
    notePaint: plain,
  }
  const block = new LiveBlock(terminal)
  block.show(['日本語の長い文章です', 'b', 'c', 'd', 'e', 'f'])
  const lines = drawn.split('\n').slice(0, -1)
  assert.deepEqual(lines.slice(1), ['b', 'c', '… 3 lines more'])
  assert.ok(widthOf(lines[0]!.replace(/^[\s\S]*2K/, '')) <= 19)
  drawn = ''
  block.show(['x'])
  assert.equal(drawn.split('\u001b[1A\u001b[2K').length - 1, 4)
  block.end()
  assert.ok(drawn.endsWith('\u001b[?25h'), 'the cursor is back')
})

test('colours are for terminals that want them', () => {
  assert.equal(paintFor({ isTTY: true }, {})('red', 'x'), '\u001b[31mx\u001b[39m')
  assert.equal(paintFor({ isTTY: true }, { NO_COLOR: '1' })('red', 'x'), 'x')
  assert.equal(paintFor({ isTTY: true }, { TERM: 'dumb' })('red', 'x'), 'x')
  assert.equal(plain('red', 'x'), 'x')
})

test('ages read both ways', () => {
  assert.equal(ago(1_000, 1_200), 'now')
  assert.equal(ago(0, 190_000), '3m 10s ago')
  assert.equal(ago(5_000, 0), 'in 5s')
})
