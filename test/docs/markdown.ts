/** The documents for people, taken apart: code blocks, links, headings. Used by the tests of this folder. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/source.js'

export interface Document {
  /** From the root, with forward slashes. */
  path: string
  text: string
}

export interface Block {
  /** The document it stands in. */
  path: string
  /** Of its first line of code, from 1. */
  line: number
  /** What stands behind the fence: `ts run`. */
  words: string[]
  code: string
}

const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'embedded/README.md']

export function documents(): Document[] {
  const guides = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file.replaceAll('\\', '/')}`)
  return [...PAGES, ...guides.sort()].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

/** Fenced code, in order. A block that is not closed is an error. */
export function blocksOf({ path, text }: Document): Block[] {
  const blocks: Block[] = []
  let open: { line: number; words: string[]; code: string[] } | undefined
  text.split('\n').forEach((line, index) => {
    const fence = /^```(.*)$/.exec(line)
    if (fence === null) open?.code.push(line)
    else if (open === undefined) open = { line: index + 2, words: fence[1]!.trim().split(/\s+/), code: [] }
    else {
      blocks.push({ path, line: open.line, words: open.words, code: open.code.join('\n') })
      open = undefined
    }
  })
  if (open !== undefined) throw new Error(`${path}:${open.line} begins a block of code that does not end`)
  return blocks
}

/** The text without its code, so that what looks like a link or a heading is one. */
export function proseOf({ text }: Document): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')
}

/** Targets of links. */
export function linksOf(document: Document): string[] {
  return [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!)
}

/** As the places where documents are read make them: `#order-of-a-queue`. */
export function anchorsOf({ text }: Document): string[] {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} +(.+)$/gm)
  return [...headings].map((match) => anchorOf(match[1]!))
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}
