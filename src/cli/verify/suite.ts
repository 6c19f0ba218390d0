/** The conformance suite as verify runs it: case by case, in a few schemas side by side, each with its verdict. Called by verify.ts. */
import { QueueError } from '../../core/errors.js'
import { type ConformanceCase, runCase, type StoreFactory } from '../../testing/conformance/index.js'

/** `lacking`: the store has no such facet, or hints do not come that way; nothing is wrong. `trouble`: the store was away. */
export type CaseVerdict =
  | { verdict: 'kept' }
  | { verdict: 'broken'; why: string }
  | { verdict: 'not judged'; why: string; because: 'lacking' | 'trouble' }

export type JudgedCase = Pick<ConformanceCase, 'name' | 'promise'> & CaseVerdict

export interface Suite {
  cases: readonly ConformanceCase[]
  /** As many cases run side by side as there are places for them. */
  factories: readonly StoreFactory[]
  asked: AbortSignal
  /** Hears each case as it is judged. */
  told: (judged: JudgedCase) => void
}

/** In the order of the cases. Rejects when it is asked to end. */
export async function judgeSuite({ cases, factories, asked, told }: Suite): Promise<JudgedCase[]> {
  const judged = new Map<ConformanceCase, JudgedCase>()
  // The longest ones stand at the end of the list: begun first, they hold nobody up.
  const left = cases.toReversed()
  const judgeBy = async (factory: StoreFactory): Promise<void> => {
    for (let next = left.shift(); next !== undefined && !asked.aborted; next = left.shift()) {
      const { name, promise } = next
      const verdict: JudgedCase = { name, promise, ...(await verdictOf(next, factory)) }
      judged.set(next, verdict)
      told(verdict)
    }
  }
  // A case may take long: whoever asks for the end does not wait for it.
  await Promise.race([Promise.all(factories.map(judgeBy)), endOf(asked)])
  asked.throwIfAborted()
  return cases.map((one) => judged.get(one)!)
}

function endOf(asked: AbortSignal): Promise<void> {
  return new Promise((resolve) => asked.addEventListener('abort', () => resolve(), { once: true }))
}

async function verdictOf(conformanceCase: ConformanceCase, factory: StoreFactory): Promise<CaseVerdict> {
  try {
    const result = await runCase(conformanceCase, factory)
    if (result.status === 'passed') return { verdict: 'kept' }
    return { verdict: 'not judged', why: result.reason, because: 'lacking' }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    // The case found a fault, or the store was not there to be judged.
    const away = error instanceof QueueError && error.code === 'STORE_UNAVAILABLE'
    return away ? { verdict: 'not judged', why, because: 'trouble' } : { verdict: 'broken', why }
  }
}
