/**
 * The forms of chaos, in one table: what each does to a running system, and when. A form is a pure plan of acts, by
 * seed; the driver performs them. Called by the driver.
 */
import type { Act, Cast } from './acts.js'
import { cutActs, freezeActs, poolerActs, readOnlyActs, restartActs, skewActs } from './fault-acts.js'
import { killActs } from './kill-acts.js'

export interface Form {
  /** What it does, in a sentence. */
  about: string
  /** Its full size, without --seconds: until so many kills are done, or for so long. */
  full: { kills: number; jobs: number } | { seconds: number }
  /** It spoils the server itself, so it never runs on one of yours. */
  ownServer: boolean
  /** Endless, in the order of their instants: the driver takes as many as it has time or kills for. */
  acts(seed: number, cast: Cast): Generator<Act, void>
}

const TEN_MINUTES = { seconds: 600 }

export const FORMS = {
  kill: {
    about: 'kills worker and producer processes (SIGKILL) at any moment, also several at once',
    full: { jobs: 50_000, kills: 200 },
    ownServer: false,
    acts: killActs,
  },
  freeze: {
    about: 'stops processes (SIGSTOP), mostly for longer than the lease, and lets them go on',
    full: TEN_MINUTES,
    ownServer: false,
    acts: freezeActs,
  },
  cut: {
    about: 'spoils the network: closes, refuses, delays or swallows, also in one direction, for some or for all',
    full: TEN_MINUTES,
    ownServer: false,
    acts: cutActs,
  },
  restart: {
    about: 'kills PostgreSQL or a session of it, stops and starts it, ends all sessions',
    full: TEN_MINUTES,
    ownServer: true,
    acts: restartActs,
  },
  readonly: {
    about: 'makes PostgreSQL refuse writes, as a server does that lost its role, and takes that back',
    full: TEN_MINUTES,
    ownServer: true,
    acts: readOnlyActs,
  },
  skew: {
    about: 'gives each process a clock that is up to 10 minutes off, and lets it jump',
    full: TEN_MINUTES,
    ownServer: false,
    acts: skewActs,
  },
  pooler: {
    about:
      'puts PgBouncer in transaction mode before PostgreSQL, with few connections, and kills, stops and cuts it off',
    full: TEN_MINUTES,
    ownServer: false,
    acts: poolerActs,
  },
} as const satisfies Record<string, Form>

export type FormName = keyof typeof FORMS
export const FORM_NAMES = Object.keys(FORMS) as FormName[]
