/** What is under way during an upgrade, on PostgreSQL 18. */
import { callsUnderWayOn } from './calls-under-way.js'

callsUnderWayOn(18)
