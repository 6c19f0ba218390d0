/** What can be measured. Read by the declaration of `bench` and by the command. */

export const SCENARIO_NAMES = ['enqueue', 'singles', 'drain', 'latency'] as const
export type ScenarioName = (typeof SCENARIO_NAMES)[number]
