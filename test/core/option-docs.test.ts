/** Every option says what it does and what it is when nobody gives it, where editors and the reference can read it. */
import assert from 'node:assert/strict'
import test from 'node:test'
import ts from 'typescript'
import { type SourceFile, sourceFiles } from '../support/source.js'

/** The entries of option tables that have neither a comment above them nor a doc. */
function silentOptions(file: SourceFile): string[] {
  const source = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.ES2023, true)
  const silent: string[] = []
  const visit = (node: ts.Node): void => {
    const isTable = ts.isSatisfiesExpression(node) && node.type.getText() === 'OptionTable'
    if (isTable && ts.isObjectLiteralExpression(node.expression))
      for (const entry of node.expression.properties) {
        if (ts.isSpreadAssignment(entry)) continue
        const documented = ts.getJSDocCommentsAndTags(entry).length > 0 || /\bdoc: /.test(entry.getText())
        if (!documented) silent.push(`${file.path}: ${entry.name?.getText()}`)
      }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return silent
}

test('every option of every table has its doc', () => {
  assert.deepEqual(sourceFiles('src').flatMap(silentOptions), [])
})

test('the check sees an option without one', () => {
  const text = 'const T = {\n/** Doc. */\na: { check },\nb: { check }, c: { check, doc: "x" } } satisfies OptionTable'
  assert.deepEqual(silentOptions({ path: 'x.ts', text }), ['x.ts: b'])
})
