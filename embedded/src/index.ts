// Job: the public face of @leasehold/embedded.
// Called by: applications, tests and the leasehold command.
export { EMBEDDED_ERRORS, EmbeddedError, type EmbeddedErrorCode } from './error.js'
export type { EmbeddedOptions } from './options.js'
export { type EmbeddedServer, startEmbedded } from './start.js'
