/** PostgreSQL answers what the memory store answers, and keeps what it keeps. More of it: `npm run sim -- --differential`. */
import { differentialOn } from '../support/differential.js'

differentialOn(18, 12)
