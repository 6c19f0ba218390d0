/** `leasehold/testing`: what users need to test their own jobs, and their own stores. */
export { type MemoryOptions, MemoryStorage, openMemory } from '../storage/memory/index.js'
/** The port that a store of your own implements, and the suite holds it to. */
export type * from '../storage/storage.js'
export { check, type Finding, type RuleCount, type Verdict } from './checker/check.js'
export { historyOfEvents, type LogFacts, type RecordedHistory } from './checker/event-log.js'
export type { Expectation } from './checker/expectation.js'
export type { History, HistoryEvent, StoreRecord, Witnessed } from './checker/history.js'
export {
  CASES,
  type CaseResult,
  type ConformanceCase,
  type Facet,
  type JobSketch,
  Kit,
  runCase,
  runConformance,
  type StoreFactory,
  type StoreUnderTest,
  type TestFunction,
  TestWorker,
} from './conformance/index.js'
export { memoryFactory } from './conformance/memory-factory.js'
export {
  type Configuration,
  configurationOf,
  type Faults,
  type Seams,
  type Simulated,
  type SimulatedStore,
  type SimulateOptions,
  type Spoil,
  shrink,
  simulate,
  type Violation,
  type World,
} from './simulator/index.js'
export { VirtualTime, type VirtualTimeOptions } from './virtual-time.js'
