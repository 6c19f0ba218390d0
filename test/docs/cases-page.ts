/** docs/cases.md, made from the list of reported faults and from the names of the tests. Used by cases.test.ts, and by write-cases.ts, which writes it. */
import ts from 'typescript'
import { type SourceFile, sourceFiles } from '../support/source.js'
import { LATER, type ReportedCase, SECTIONS } from './reported.js'
import { table } from './table.js'

/** The ids in the names of a file's tests. A name is the first argument of whatever makes a test of it. */
export function idsIn({ path, text }: SourceFile): Set<string> {
  const ids = new Set<string>()
  const visit = (node: ts.Node): void => {
    const name = ts.isCallExpression(node) ? node.arguments[0] : undefined
    if (name && (ts.isStringLiteralLike(name) || ts.isTemplateExpression(name)))
      for (const [id] of name.getText().matchAll(/\bB\d{2,3}\b/g)) ids.add(id)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true))
  return ids
}

/** By file, the ids in the names of its tests. */
export type NamedIds = ReadonlyMap<string, ReadonlySet<string>>

export function namedIds(): NamedIds {
  const files = sourceFiles('test')
    .map((file) => [file.path, idsIn(file)] as const)
    .filter(([, ids]) => ids.size > 0)
  return new Map(files.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** What is wrong with the list, given the tests that there are. */
export function problems(cases: readonly ReportedCase[], tests: NamedIds): string[] {
  const known = new Set(cases.map(({ id }) => id))
  const tested = new Set([...tests.values()].flatMap((ids) => [...ids]))
  const unlisted = [...tests].flatMap(([file, ids]) => [...ids].filter((id) => !known.has(id)).map((id) => [id, file]))
  return [
    ...(known.size < cases.length ? ['an id is listed twice'] : []),
    ...unlisted.map(([id, file]) => `${id} of ${file} is not listed`),
    ...cases
      .filter(({ id, later }) => !tested.has(id) && later.length === 0)
      .map(({ id }) => `${id} is neither tested nor owed`),
    ...cases.flatMap(({ id, later }) =>
      later.filter((part) => !LATER.includes(part)).map((part) => `${id} waits for "${part}", which nobody owes`),
    ),
  ]
}

function where({ id, later }: ReportedCase, tests: NamedIds): string {
  const files = [...tests].filter(([, ids]) => ids.has(id)).map(([file]) => file)
  const links = files.map((file) => `[${file.replace(/^test\/|(\.test)?\.ts$/g, '')}](../${file})`).join(', ')
  const owed = later.length === 0 ? '' : `later: ${later.join(', ')}`
  return [links, owed].filter((part) => part !== '').join('; ')
}

export function casesPage(tests: NamedIds): string {
  const sections = SECTIONS.map(({ title, cases }) => {
    const rows = cases.map((one) => [one.id, one.fault, one.promise, where(one, tests)])
    return `## ${title}\n\n${table(['case', 'the fault elsewhere', 'what is promised here', 'tests'], rows)}`
  })
  return `${[HEAD, ...sections].join('\n\n')}\n`
}

const HEAD = `# Cases

<!-- Made by test/docs/write-cases.ts from test/docs/reported.ts and the names of the tests. -->

Job queues have been around for long, and their faults were reported in public. Each of these is played here: a test has
its id in its name, and shows that it does not happen, or how it ends. Where the whole or a part of it concerns what is
not there yet, that waits (_later_). A test checks that every case of the list has one or the other, and that this page
names all tests that carry its id.`
