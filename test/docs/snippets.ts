/**
 * Examples of the documents, made into programs. A block marked `ts` has to compile; one marked `ts run` has to run,
 * to its end (`ts run`) or until it is asked to end (`ts run term`). A first line `// name.ts` makes it a module that
 * other blocks of its document may import. A line that ends in `// → text` says what is printed. Used by snippets.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { ROOT } from '../support/source.js'
import { AMBIENT } from './ambient.js'
import type { Block } from './markdown.js'

/** Stands for the reader's own database. */
export const PLACEHOLDER_URL = 'postgres://localhost/app'

/** In the package itself, so that `leasehold` is what would be published. */
const FOLDER = fileURLToPath(new URL('../../snippets', import.meta.url))
const RUN_MS_MAX = 60_000

export interface Snippet {
  block: Block
  /** The TypeScript file. */
  file: string
  /** How it is run; undefined: it only has to compile. */
  run: 'end' | 'term' | undefined
  needsDatabase: boolean
  /** What it says it prints, in order. */
  prints: string[]
}

/** Writes the blocks out as files. `urlOf` gives the database of a document. */
export function writeSnippets(blocks: readonly Block[], urlOf: (path: string) => string): Snippet[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'ambient.d.ts'), AMBIENT)
  return blocks.filter(({ words }) => words[0] === 'ts').map((block) => written(block, urlOf))
}

function written(block: Block, urlOf: (path: string) => string): Snippet {
  const folder = join(FOLDER, block.path.replace(/\.md$/, '').replaceAll('/', '-').toLowerCase())
  const name = /^\/\/ ([\w-]+)\.ts$/m.exec(block.code.split('\n')[0]!)?.[1] ?? `line-${block.line}`
  const file = join(folder, `${name}.ts`)
  const needsDatabase = block.code.includes(PLACEHOLDER_URL)
  const code = needsDatabase ? block.code.replaceAll(PLACEHOLDER_URL, urlOf(block.path)) : block.code
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${code}\nexport {}\n`)
  return { block, file, run: runOf(block), needsDatabase, prints: printsOf(block.code) }
}

function runOf({ words, path, line }: Block): Snippet['run'] {
  const [, ...marks] = words
  const known = marks.length === 0 || marks.join(' ') === 'run' || marks.join(' ') === 'run term'
  if (!known) throw new Error(`${path}:${line} is marked "${words.join(' ')}"; give ts, ts run or ts run term`)
  if (marks.length === 0) return undefined
  return marks.includes('term') ? 'term' : 'end'
}

function printsOf(code: string): string[] {
  return [...code.matchAll(/\/\/ → (.+)$/gm)].map((match) => match[1]!)
}

/** Compiles all of them, in place, and says what is wrong. */
export function compile(snippets: readonly Snippet[]): string[] {
  const program = ts.createProgram([join(FOLDER, 'ambient.d.ts'), ...snippets.map(({ file }) => file)], options())
  const { diagnostics } = program.emit()
  return [...ts.getPreEmitDiagnostics(program), ...diagnostics].map((found) => told(found, snippets))
}

function options(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.base.json'), ts.sys.readFile) as {
    config: { compilerOptions: unknown }
  }
  const { options: base } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT)
  const typeRoots = [join(ROOT, 'node_modules/@types')]
  return { ...base, typeRoots, incremental: false, declaration: false, sourceMap: false }
}

/** In terms of the document. */
function told({ file, start, messageText }: ts.Diagnostic, snippets: readonly Snippet[]): string {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n')
  const snippet = snippets.find((one) => one.file === file?.fileName)
  if (file === undefined || snippet === undefined) return `${file?.fileName ?? ''} ${text}`
  const { line } = file.getLineAndCharacterOfPosition(start ?? 0)
  return `${snippet.block.path}:${snippet.block.line + line} ${text}`
}

export interface Ran {
  code: number | null
  output: string
}

/** Runs a compiled one. One that serves until it is asked to end is asked when it has printed what it says it prints. */
export async function run({ file, run: how, prints }: Snippet, cwd: string): Promise<Ran> {
  const child = spawn(process.execPath, [file.replace(/\.ts$/, '.js')], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let asked = false
  const heard = (chunk: Buffer): void => {
    output += chunk.toString()
    if (how !== 'term' || asked || missingOf(prints, output) !== undefined) return
    asked = true
    child.kill('SIGTERM')
  }
  child.stdout.on('data', heard)
  child.stderr.on('data', heard)
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_MS_MAX)
  const code = await ended(child)
  clearTimeout(timer)
  return { code, output }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
}

/** The first line that should have been printed and was not, in this order. */
export function missingOf(prints: readonly string[], output: string): string | undefined {
  const lines = output.split('\n').map((line) => line.trim())
  let from = 0
  for (const expected of prints) {
    const at = lines.indexOf(expected, from)
    if (at < 0) return expected
    from = at + 1
  }
  return undefined
}
