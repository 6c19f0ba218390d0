/** Upgrades of the releases that are kept, on PostgreSQL 15. */
import { upgradesOn } from '../upgrade/upgrades.js'

upgradesOn(15)
