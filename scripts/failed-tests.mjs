// Finds the failed tests in the output of the spec reporter, as it comes, and what each of them said. Called by run.mjs.

const COLOURS = /\u001b\[[0-9;]*m/g
/** Of what a failed test says, at the end of a run: whoever reads only the end of a long log has to learn why. */
const REASON_LINES_MAX = 20

export class FailedTests {
  #root
  #rest = ''
  /** The reporter repeats them at its end, each after the line of its place: only there the file is told. */
  #summary = false
  #place = ''
  #early = new Set()
  /** By `file: name`, the lines of its error. */
  #placed = new Map()
  #reason

  constructor(root) {
    this.#root = root
  }

  /** Takes a piece of the output; it may end within a line. */
  read(chunk) {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop()
    for (const line of lines) this.#line(line.replace(COLOURS, ''))
  }

  /** `file: name`, or the bare names where the runner died before it told the files. */
  found() {
    this.#line(this.#rest.replace(COLOURS, ''))
    this.#rest = ''
    return [...(this.#placed.size > 0 ? this.#placed.keys() : this.#early)]
  }

  /** The first lines of what a test of `found` said; empty where the runner did not come to tell it. */
  reason(name) {
    return this.#placed.get(name) ?? []
  }

  #line(line) {
    if (/^✖ failing tests:/.test(line)) this.#summary = true
    else if (this.#summary && line.startsWith('test at ')) this.#place = shortened(line.slice(8), this.#root)
    else {
      const name = /^\s*✖ (.+?)(?: \([\d.]+ms\))?(?: #.*)?$/.exec(line)?.[1]
      if (name === undefined) this.#said(line)
      else if (this.#summary) this.#failed(this.#place === '' ? name : `${this.#place}: ${name}`)
      else this.#early.add(name)
    }
  }

  #failed(name) {
    this.#reason = []
    this.#placed.set(name, this.#reason)
  }

  #said(line) {
    if (line.trim() !== '' && this.#reason?.length < REASON_LINES_MAX) this.#reason.push(line.trimEnd())
  }
}

/** As it is called in the source: `test/core/json.test.ts`. */
function shortened(place, root) {
  return place
    .replace(root, '')
    .replace(/^build\//, '')
    .replace(/\.js:.*$/, '.ts')
}
