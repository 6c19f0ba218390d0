/** The store of the examples: LEASEHOLD_URL, or a PostgreSQL in ./data that is started for them. */

export async function openStore() {
  const url = process.env.LEASEHOLD_URL
  if (url) return { url, stop: async () => {} }
  const { startEmbedded } = await import('@leasehold/embedded')
  return startEmbedded({ dir: './data' })
}
