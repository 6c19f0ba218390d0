/** Writes the made parts of docs/races.md. Run by hand after a change of the races: node build/test/docs/write-races.js */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/source.js'
import { remade } from './races-page.js'

const file = join(ROOT, 'docs/races.md')
writeFileSync(file, remade(readFileSync(file, 'utf8')))
