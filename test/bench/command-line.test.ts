/** The words of `npm run bench`: what is run, and what is refused. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { readCommand } from '../../bench/command-line.js'
import { Refusal } from '../../bench/options.js'
import { scenario } from '../../bench/scenario.js'
import { SCENARIOS } from '../../bench/scenarios.js'

const fishing = scenario({
  name: 'fishing',
  summary: 'how many are caught',
  options: {
    jobs: { type: 'whole', default: 500, quick: 5, doc: 'fish' },
    depth: { type: 'whole', doc: 'metres' },
    byNight: { type: 'flag', doc: 'without light' },
    bait: { type: 'choice', choices: ['worm', 'bread'], default: 'worm', doc: 'on the hook' },
  },
  variants: [{}, { 'by-night': undefined }, { depth: '3' }],
  async *run() {},
})
const sleeping = scenario({ name: 'sleeping', summary: 'nothing', options: {}, async *run() {} })
const both = [fishing, sleeping]

function runsOf(words: string) {
  const command = readCommand(words.split(' '), both)
  assert.ok(command.do === 'run')
  return command
}

function refused(words: string, message: RegExp): void {
  assert.throws(
    () => readCommand(words.split(' '), both),
    (error) => error instanceof Refusal && message.test(error.message),
  )
}

test('every option has its default, or what was given', () => {
  const { runs, form } = runsOf('fishing')
  assert.equal(form, 'lines')
  assert.deepEqual(runs, [
    { scenario: fishing, options: { jobs: 500, depth: undefined, byNight: false, bait: 'worm' } },
  ])
  const given = runsOf('--by-night fishing --jobs 7 --bait=bread --json --depth 2k')
  assert.equal(given.form, 'json')
  assert.deepEqual(given.runs[0]!.options, { jobs: 7, depth: 2_000, byNight: true, bait: 'bread' })
})

test('a quick run has small sizes, but for those that were given', () => {
  assert.equal(runsOf('fishing --quick').runs[0]!.options.jobs, 5)
  assert.equal(runsOf('fishing --quick --jobs 7').runs[0]!.options.jobs, 7)
})

test('numbers may be written as people write them', () => {
  for (const [word, value] of Object.entries({ '200k': 200_000, '3M': 3_000_000, '1_000': 1_000, '7': 7 }))
    assert.equal(runsOf(`fishing --jobs ${word}`).runs[0]!.options.jobs, value)
  for (const word of ['0', '-5', '1.5', '1e3', 'many', '9999999M'])
    refused(`fishing --jobs=${word}`, /^--jobs takes a whole number from 1 .*, not "/)
  refused('fishing --jobs', /^--jobs takes a whole number.*not nothing$/)
})

test('"all" runs every scenario in all of its forms', () => {
  const { runs } = runsOf('all --quick')
  assert.deepEqual(
    runs.map((run) => run.scenario.name),
    ['fishing', 'fishing', 'fishing', 'sleeping'],
  )
  assert.deepEqual(
    runs.map(({ options }) => [options.byNight, options.depth]),
    [
      [false, undefined],
      [true, undefined],
      [false, 3],
      [undefined, undefined],
    ],
  )
  refused('all --jobs 5', /takes --json and --quick only, not --jobs/)
})

test('what there is not is refused, with what was meant', () => {
  refused('fising', /unknown scenario "fising"; did you mean "fishing"\? \(known: fishing, sleeping, all\)/)
  refused('fishing --job 3', /unknown option --job; did you mean --jobs\?/)
  refused('fishing --by-nigth', /unknown option --by-nigth; did you mean --by-night\?/)
  refused('sleeping --jobs 3', /unknown option --jobs; known here: --json, --quick, --help/)
  refused('fishing --bait bred', /--bait is one of worm, bread, not "bred"; did you mean "bread"\?/)
  refused('fishing --bait', /--bait is one of worm, bread$/)
  refused('fishing --by-night=yes', /--by-night takes no value, not "yes"/)
  refused('fishing sleeping', /one scenario at a time.*what is "sleeping"/)
  refused('--json', /name a scenario first; one of fishing, sleeping, all/)
})

test('help lists the scenarios, or the options of one', () => {
  for (const words of [[], ['--help'], ['-h']]) {
    const command = readCommand(words, both)
    assert.ok(command.do === 'help')
    assert.match(command.text, /^ {2}fishing +how many are caught$/m)
    assert.match(command.text, /^ {2}sleeping +nothing$/m)
    assert.match(command.text, /^ {2}--quick +/m)
  }
  const one = readCommand(['fishing', '--help'], both)
  assert.ok(one.do === 'help')
  assert.match(one.text, /^ {2}--jobs N +fish \(500\)$/m)
  assert.match(one.text, /^ {2}--depth N +metres$/m)
  assert.match(one.text, /^ {2}--by-night +without light$/m)
  assert.match(one.text, /^ {2}--bait worm\|bread +on the hook \(worm\)$/m)
})

test('the forms in which "all" runs the scenarios are forms that they have', () => {
  const command = readCommand(['all'], SCENARIOS)
  assert.ok(command.do === 'run')
  const names = new Set(command.runs.map((run) => run.scenario.name))
  assert.equal(names.size, SCENARIOS.length)
  for (const { name, summary } of SCENARIOS) assert.ok(`  ${name}  ${summary}`.length <= 110, name)
})
