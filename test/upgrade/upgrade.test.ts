/** Upgrades of the releases that are kept, on PostgreSQL 18. */
import { upgradesOn } from './upgrades.js'

upgradesOn(18)
