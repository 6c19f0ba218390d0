/** Colours, where a terminal shows them. Made by terminal.ts, used by whatever is written for people. */

const CODES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], cyan: [36, 39] } as const

export type Colour = keyof typeof CODES
export type Paint = (colour: Colour, text: string) => string

export const plain: Paint = (_colour, text) => text

const ansi: Paint = (colour, text) => {
  const [on, off] = CODES[colour]
  return text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`
}

/** NO_COLOR, if set to anything, wins over the terminal (no-color.org). */
export function paintFor(stream: { isTTY?: boolean }, environment: NodeJS.ProcessEnv): Paint {
  const wanted = stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb'
  return wanted ? ansi : plain
}
