/** All scenarios, in the order in which help shows them. */
import type { Scenario } from './scenario.js'
import { ageing } from './scenarios/ageing.js'
import { backlog } from './scenarios/backlog.js'
import { drain } from './scenarios/drain.js'
import { enqueue } from './scenarios/enqueue.js'
import { flood } from './scenarios/flood.js'
import { idle } from './scenarios/idle.js'
import { latency } from './scenarios/latency.js'
import { memory } from './scenarios/memory.js'
import { mixed } from './scenarios/mixed.js'
import { reads } from './scenarios/reads.js'
import { recovery } from './scenarios/recovery.js'
import { singles } from './scenarios/singles.js'
import { steady } from './scenarios/steady.js'

export const SCENARIOS: readonly Scenario[] = [
  enqueue,
  singles,
  drain,
  latency,
  backlog,
  mixed,
  flood,
  ageing,
  recovery,
  steady,
  idle,
  reads,
  memory,
]
