/** SIGTERM and SIGINT, for as long as worker.run() wants them. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Calls `heard` with the name of each signal and how many came before. Returns the function that ends it. */
export function onSignals(heard: (signal: string, before: number) => void): () => void {
  let count = 0
  const listener = (signal: NodeJS.Signals): void => heard(signal, count++)
  for (const signal of SIGNALS) process.on(signal, listener)
  return () => {
    for (const signal of SIGNALS) process.off(signal, listener)
  }
}
