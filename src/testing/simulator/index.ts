/** The simulator: the whole library on virtual time, through faults that a seed draws. Part of `leasehold/testing`. */
export { type Configuration, configurationOf, type Faults } from './configuration.js'
export { type ShrinkOptions, shrink } from './shrink.js'
export { type Seams, type Simulated, type SimulateOptions, type Spoil, simulate, type Violation } from './simulate.js'
export { SimulatedStore, type World } from './worlds.js'
