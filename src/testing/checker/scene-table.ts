/** The rules that are about no single job, of all subjects, in one table. Read by the checker. */
import { LIMIT_RULES } from './limit-rules.js'
import { ORDER_RULES } from './order-rules.js'
import type { SceneRule } from './rule.js'
import { SCENE_RULES } from './scene-rules.js'
import { STORE_RULES } from './store-rules.js'
import { TENANT_RULES } from './tenant-rules.js'
import { WORKER_SCENE_RULES } from './worker-rules.js'

export const RULES_OF_SCENE: readonly SceneRule[] = [
  ...SCENE_RULES,
  ...STORE_RULES,
  ...WORKER_SCENE_RULES,
  ...ORDER_RULES,
  ...LIMIT_RULES,
  ...TENANT_RULES,
]
