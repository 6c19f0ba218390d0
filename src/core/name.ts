/** The naming rule of kinds and queues. Checked wherever a name enters: kinds, options, control calls, the CLI. */
import { QueueError } from './errors.js'
import { NAME_BYTES_MAX } from './job.js'
import { show } from './show.js'

/** ASCII only, so that characters are bytes and a name is safe in SQL, URLs, metric labels and file names alike. */
const NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,${NAME_BYTES_MAX - 1}}$`)

export const NAME_RULE = `1 to ${NAME_BYTES_MAX} letters, digits or _ . : / - (no others), the first a letter or digit`

/** The name itself. Throws INVALID_NAME, which tells the whole rule, when it breaks it. */
export function checkName(value: unknown, field: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value
  throw new QueueError('INVALID_NAME', `${field}: ${show(value)} is not a name; a name has ${NAME_RULE}`, { field })
}
