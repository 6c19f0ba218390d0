/**
 * The rules that the story of each job has to keep, in one table. A new subject is a file with a table of its own and a
 * row here; rules that are about no single job are in scene-table.ts. Read by the checker, and by whoever lists what is
 * judged.
 */
import { ACCEPTANCE_RULES } from './acceptance-rules.js'
import { ENDING_RULES } from './ending-rules.js'
import { MOVE_RULES } from './move-rules.js'
import { OPERATOR_RULES } from './operator-rules.js'
import type { Rule } from './rule.js'
import { RUN_RULES } from './run-rules.js'
import { WORKER_RULES } from './worker-rules.js'

export const RULES: readonly Rule[] = [
  ...ACCEPTANCE_RULES,
  ...ENDING_RULES,
  ...RUN_RULES,
  ...MOVE_RULES,
  ...OPERATOR_RULES,
  ...WORKER_RULES,
]
