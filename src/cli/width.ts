/** How much room text takes on a terminal: wide characters take two columns, marks none. Called by tables and redraws. */

/** Ideographs, kana, hangul, full-width forms, and pictures that are drawn as such. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
const MARK = /\p{Mark}|[\u200d\ufe0f]/u
const PLAIN = /^[\x20-\x7e]*$/
const COLOUR = /(\u001b\[[0-9;]*m)/
const COLOURS = new RegExp(COLOUR, 'g')

/** Columns that the text takes; colours take none. */
export function widthOf(text: string): number {
  const bare = text.replace(COLOURS, '')
  if (PLAIN.test(bare)) return bare.length
  let width = 0
  for (const character of bare) width += columnsOf(character)
  return width
}

/** At most so wide. Where something is cut off an ellipsis says so; colours stay, so that what was begun is ended. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let room = width - 1
  let result = ''
  for (const part of text.split(COLOUR)) {
    if (COLOUR.test(part)) result += part
    else if (room >= 0) {
      const kept = headOf(part, room)
      room -= widthOf(kept)
      if (kept.length < part.length) {
        result += `${kept}…`
        room = -1
      } else result += kept
    }
  }
  return result
}

/** In lines of at most so much, broken between words; a word that is too long stands alone. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** In so many lines at most, broken between words, and within those that are too long; what is left out ends in an ellipsis. */
export function broken(text: string, width: number, linesMax: number): string[] {
  const words = text.split(' ').flatMap((word) => pieces(word, width))
  const lines = wrapped(words.join(' '), width)
  const kept = lines.slice(0, linesMax)
  if (lines.length > kept.length) kept.push(`${kept.pop()} …`)
  return kept.map((line) => cutToWidth(line, width))
}

/** Of a word that is wider than a line, such as a sentence in a script without spaces. */
function pieces(word: string, width: number): string[] {
  const found: string[] = []
  let rest = word
  while (widthOf(rest) > width) {
    const head = headOf(rest, width)
    found.push(head)
    rest = rest.slice(head.length)
  }
  return [...found, rest]
}

function headOf(text: string, room: number): string {
  let result = ''
  for (const character of text) {
    room -= columnsOf(character)
    if (room < 0) break
    result += character
  }
  return result
}

function columnsOf(character: string): number {
  if (MARK.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
