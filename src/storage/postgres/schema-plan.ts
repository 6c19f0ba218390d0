/** What the schema shall become: its migrations, its functions, and the protocol that this client speaks. Called by migrate.ts. */
import { FUNCTIONS, FUNCTIONS_DIGEST, FUNCTIONS_REVISION } from './functions/index.js'
import { CLIENT_PROTOCOL, MIGRATIONS, type Migration } from './migrations/index.js'

export interface SchemaPlan {
  readonly migrations: readonly Migration[]
  readonly functions: { readonly text: string; readonly revision: number; readonly digest: string }
  readonly protocol: number
}

export const PLAN: SchemaPlan = {
  migrations: MIGRATIONS,
  functions: { text: FUNCTIONS, revision: FUNCTIONS_REVISION, digest: FUNCTIONS_DIGEST },
  protocol: CLIENT_PROTOCOL,
}
