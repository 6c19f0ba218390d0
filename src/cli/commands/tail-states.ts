/** How a job may end. Read by the declaration of `tail` and by the command. */
import type { EndingState } from '../../storage/storage.js'

export const ENDING_STATES = ['completed', 'cancelled', 'dead'] as const satisfies readonly EndingState[]
