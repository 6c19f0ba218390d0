/**
 * All functions of the schema, as they are now. They are put in as a whole, after the migrations, whenever the schema
 * has another text of them. What stays while clients of an older version run: the name, the arguments and the columns
 * of the answer of each released function. Called by migrate.ts.
 */
import { createHash } from 'node:crypto'
import { BEAT } from './beat.js'
import { CLAIM } from './claim.js'
import { CLOCK } from './clock.js'
import { CONTROL } from './control.js'
import { DAYS } from './days.js'
import { DEPTH } from './depth.js'
import { ENQUEUE } from './enqueue.js'
import { HISTORY } from './history.js'
import { INTAKE } from './intake.js'
import { KEYS } from './keys.js'
import { LEASE } from './lease.js'
import { LIMITS } from './limits.js'
import { QUEUES } from './queues.js'
import { RELEASED } from './released.js'
import { SETTLE } from './settle.js'
import { TAKE_OVER } from './take-over.js'
import { TENANTS } from './tenants.js'
import { UPKEEP } from './upkeep.js'

/** In an order in which each SQL function finds those that it calls. */
export const FUNCTIONS: string = [
  CLOCK,
  QUEUES,
  DAYS,
  HISTORY,
  DEPTH,
  TENANTS,
  KEYS,
  INTAKE,
  ENQUEUE,
  LEASE,
  LIMITS,
  SETTLE,
  CLAIM,
  BEAT,
  TAKE_OVER,
  UPKEEP,
  CONTROL,
  RELEASED,
].join('')

/**
 * Rises with each release whose functions differ from those of the one before, so that a process of an older version
 * that starts later leaves the newer text alone. Between releases the text itself decides.
 */
export const FUNCTIONS_REVISION = 2

export const FUNCTIONS_DIGEST: string = createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 32)
