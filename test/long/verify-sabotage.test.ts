/** Each way of breaking a store is noticed by `leasehold verify`: by the suite, and by the drills. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Ground } from '../../src/cli/verify/ground.js'
import { type Played, playDrills } from '../../src/cli/verify/play.js'
import { reportOf } from '../../src/cli/verify/report.js'
import type { SabotageName } from '../../src/cli/verify/sabotage.js'
import { Stage } from '../../src/cli/verify/stage.js'
import { type JudgedCase, judgeSuite } from '../../src/cli/verify/suite.js'
import { realEnv } from '../../src/core/env.js'
import { CASES } from '../../src/testing/index.js'
import type { DrillName } from '../../src/testing/verify/drill-plan.js'
import { PACES } from '../../src/testing/verify/drill-plan.js'
import { serverUrl } from '../support/postgres.js'

/** What of the suite is about what is sabotaged. The whole of it takes longer and says the same. */
const ABOUT = /^(?:settle|take over|suspect): /

interface Noticed {
  cases: readonly JudgedCase[]
  played: Played
}

async function sabotaged(t: TestContext, sabotage: SabotageName): Promise<Noticed> {
  const url = serverUrl()
  const asked = new AbortController().signal
  const ground = await Ground.open({ url, sabotage, mark: `${realEnv.now().toString(36)}_${process.pid}_${sabotage}` })
  t.after(() => ground.close())
  await ground.moveClock()
  const cases = CASES.filter(({ name }) => ABOUT.test(name))
  const judged = await judgeSuite({ cases, factories: [ground.factory('hears')], asked, told: () => {} })
  await ground.renew()
  const stage = await Stage.open({ url, schema: ground.schema.name, pace: PACES.quick, asked })
  try {
    const played = await playDrills(stage, { ms: 0, progress: { say: () => {}, show: () => {} } })
    return { cases: judged, played }
  } finally {
    await stage.close()
  }
}

const NOTICED: Record<SabotageName, { cases: RegExp; drills: DrillName[]; rules: RegExp }> = {
  fence: { cases: /^(?:settle|take over): /, drills: ['stall'], rules: /end is told/ },
  'take-over': { cases: /^take over: /, drills: ['kill'], rules: /accepted is known/ },
  settle: { cases: /^settle: /, drills: ['hopeless'], rules: /accepted is known/ },
}

for (const [name, { cases, drills, rules }] of Object.entries(NOTICED))
  test(`sabotage ${name}: the suite, the drill it is of and the checker notice it`, async (t) => {
    const noticed = await sabotaged(t, name as SabotageName)
    const broken = noticed.cases.filter(({ verdict }) => verdict === 'broken')
    assert.ok(
      broken.some((one) => cases.test(one.name)),
      'the suite',
    )
    const brokenDrills = noticed.played.drills.filter(({ promises }) =>
      promises.some(({ verdict }) => verdict === 'broken'),
    )
    for (const drill of drills)
      assert.ok(
        brokenDrills.some((one) => one.drill === drill),
        drill,
      )
    const brokenRules = noticed.played.rules.filter((rule) => rule.broken > 0).map(({ rule }) => rule)
    assert.ok(
      brokenRules.some((rule) => rules.test(rule)),
      brokenRules.join(', '),
    )
    const report = reportOf({
      store: { name: 'postgres' },
      seconds: 1,
      cases: [],
      drills: { ...noticed.played, leaseMs: 1 },
    })
    assert.equal(report.verdict, 'broken', 'the drills alone are enough')
  })
