/** What every store owes, on PostgreSQL 15. */
import { conformanceOn } from '../support/conformance.js'

conformanceOn(15)
