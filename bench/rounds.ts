/** Two things measured in turns, so that a machine that grows slower does so for both. Called by enqueue and drain. */

/** `first`, `second`, `first`, `second`, …: as many of each as there are rounds. */
export async function interleaved<A, B>(
  rounds: number,
  first: () => Promise<A>,
  second: () => Promise<B>,
): Promise<{ firsts: A[]; seconds: B[] }> {
  const firsts: A[] = []
  const seconds: B[] = []
  for (let round = 0; round < rounds; round++) {
    firsts.push(await first())
    seconds.push(await second())
  }
  return { firsts, seconds }
}
