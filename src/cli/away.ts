/** Says once that the store does not answer, and once that it does again. Called by the commands that go on and on: `tail`, `stats --watch`. */
import { printable } from './printable.js'

export class Away {
  private isAway = false

  /** `say`: a line for people that stays. */
  constructor(private readonly say: (text: string) => void) {}

  away(error: unknown): void {
    if (this.isAway) return
    this.isAway = true
    this.say(`the store does not answer, trying on: ${printable((error as Error).message)}`)
  }

  back(): void {
    if (this.isAway) this.say('the store answers again')
    this.isAway = false
  }
}
