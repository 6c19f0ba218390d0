/** Everything public says in a sentence what it is, where editors show it. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import ts from 'typescript'
import { ROOT } from '../support/source.js'

const ENTRIES = ['src/index.ts', 'src/testing/index.ts', 'src/storage/postgres/index.ts']

/** `path: name` of each export without a comment of its own. */
function silentExports(): string[] {
  const files = ENTRIES.map((entry) => join(ROOT, entry))
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    noLib: true,
  })
  const checker = program.getTypeChecker()
  return files.flatMap((file, at) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!
    return checker
      .getExportsOfModule(module)
      .filter((symbol) => !isDocumented(symbol, checker))
      .map((symbol) => `${ENTRIES[at]}: ${symbol.name}`)
  })
}

function isDocumented(symbol: ts.Symbol, checker: ts.TypeChecker): boolean {
  const original = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  return original.getDocumentationComment(checker).length > 0
}

test('every export has a comment that says what it is', () => {
  assert.deepEqual(silentExports(), [])
})
