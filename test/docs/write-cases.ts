/** Writes docs/cases.md. Run by hand after a change of the list or of the tests' names: node build/test/docs/write-cases.js */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/source.js'
import { casesPage, namedIds } from './cases-page.js'

writeFileSync(join(ROOT, 'docs/cases.md'), casesPage(namedIds()))
