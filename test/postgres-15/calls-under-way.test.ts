/** What is under way during an upgrade, on PostgreSQL 15. */
import { callsUnderWayOn } from '../upgrade/calls-under-way.js'

callsUnderWayOn(15)
