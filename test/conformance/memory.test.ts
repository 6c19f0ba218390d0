/** The conformance suite on the memory store. */
import { test } from 'node:test'
import { memoryFactory, runConformance } from '../../src/testing/index.js'

runConformance(memoryFactory(), { test })
