/** What every store owes, on PostgreSQL 18. */
import { conformanceOn } from '../support/conformance.js'

conformanceOn(18)
