/** Style that a machine can hold: where time and chance come from, how long a function may be, what has no place in the product. */
import assert from 'node:assert/strict'
import test from 'node:test'
import ts from 'typescript'
import { type SourceFile, sourceFiles } from '../support/source.js'

const FUNCTION_LINES_MAX = 60

/** What is banned, and what to use. */
const BANNED: readonly [RegExp, string][] = [
  [/\bDate\.now\(/, 'env.now()'],
  [/\bnew Date\(\)/, 'env.now()'],
  [/\bMath\.random\(/, 'env.random()'],
  [/(?<![.\w])set(?:Timeout|Interval|Immediate)\(/, 'env.timer(), env.sleep() or env.soon()'],
  [/\bperformance\.now\(/, 'env.monotonic()'],
  [/\bprocess\.exit\(/, 'a return value or process.exitCode in the command line'],
  [/\bconsole\.\w+\(/, 'an event'],
]

/** Where the outside world may be touched: env itself and its double, and the command line. */
const FREE = [/^src\/core\/env\.ts$/, /^src\/cli\//, /^src\/testing\/virtual-time\.ts$/]

function bannedIn(file: SourceFile): string[] {
  if (FREE.some((free) => free.test(file.path))) return []
  const code = withoutComments(file.text)
  return BANNED.filter(([pattern]) => pattern.test(code)).map(
    ([pattern, instead]) => `${file.path}: ${pattern.source} is banned, use ${instead}`,
  )
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

function longFunctions(file: SourceFile): string[] {
  const source = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.ES2023, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const from = source.getLineAndCharacterOfPosition(node.getStart()).line
      const to = source.getLineAndCharacterOfPosition(node.getEnd()).line
      if (to - from + 1 > FUNCTION_LINES_MAX)
        found.push(`${file.path}:${from + 1} has a function of ${to - from + 1} lines`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const files = [...sourceFiles('src'), ...sourceFiles('embedded/src')]

test('time, chance, timers, exit and console come from their one place', () => {
  assert.deepEqual(files.filter((file) => file.path.startsWith('src/')).flatMap(bannedIn), [])
})

test(`no function is longer than ${FUNCTION_LINES_MAX} lines`, () => {
  assert.deepEqual(files.flatMap(longFunctions), [])
})

test('nothing is left over: no TODO, no disabled check, no `any`', () => {
  const left = /@ts-ignore|@ts-nocheck|\bas any\b|: any\b/
  assert.deepEqual(
    files
      .filter((file) => left.test(withoutComments(file.text)) || /\b(TODO|FIXME|XXX)\b/.test(file.text))
      .map((file) => file.path),
    [],
  )
})

test('every module opens by saying what it does', () => {
  const silent = files.filter((file) => !/^(#!.*\n)?\/[*/]/.test(file.text))
  assert.deepEqual(
    silent.map((file) => file.path),
    [],
  )
})

test('the checks can fail', () => {
  assert.equal(bannedIn({ path: 'src/core/x.ts', text: 'const a = Date.now()' }).length, 1)
  assert.equal(bannedIn({ path: 'src/core/x.ts', text: '// Date.now() is banned' }).length, 0)
  const long = `function f() {\n${'\n'.repeat(FUNCTION_LINES_MAX)}}`
  assert.equal(longFunctions({ path: 'src/core/x.ts', text: long }).length, 1)
})
