import { differentialOn } from '../support/differential.js'

differentialOn(15, 5)
