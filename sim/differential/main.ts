/** The differential test by itself: what `npm run sim -- --differential N` does. */
import { parseArgs } from 'node:util'
import { differentialCommand } from './command.js'

const { values } = parseArgs({
  options: {
    differential: { type: 'string', default: '100' },
    store: { type: 'string', default: 'memory' },
    seed: { type: 'string', default: '1' },
    url: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

process.exitCode = await differentialCommand({
  sequences: Number(values.differential),
  store: values.store === 'postgres' ? 'postgres' : 'memory',
  seed: Number(values.seed),
  url: values.url,
  json: values.json,
})
