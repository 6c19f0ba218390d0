/** A table of a made page. Used by the makers of races.md and cases.md. */

/** Its columns stand below each other, as the formatter of the repository has it. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const width = (at: number): number => Math.max(3, ...[heads, ...rows].map((cells) => [...cells[at]!].length))
  const widths = heads.map((_, at) => width(at))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text, at) => text + ' '.repeat(widths[at]! - [...text].length)).join(' | ')} |`
  return [line(heads), line(widths.map((n) => '-'.repeat(n))), ...rows.map(line)].join('\n')
}
