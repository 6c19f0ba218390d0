/** Judges the server: version, durability, clock, connections, hints, rights. Facts in, findings out. Called by checks.ts. */
import { formatDuration } from '../../core/duration.js'
import type { AccessFacts, ConnectionFacts, DatabaseSettings, Difference, WorkerView } from '../../storage/storage.js'
import { type Fault, type Finding, findingOf, many } from './finding.js'

const VERSION_MIN = 150_000
/** A cycle of a worker is a few round trips: above this they are what limits it. */
const ROUND_TRIP_MS_MAX = 50

export function judgeServer({ settings, roundTripMs }: { settings: DatabaseSettings; roundTripMs: number }): Finding {
  const { version, versionNumber, readOnly } = settings
  const faults: Fault[] = []
  if (versionNumber < VERSION_MIN)
    faults.push({ verdict: 'fail', text: `PostgreSQL ${version} is too old`, fix: 'PostgreSQL 15 or newer is needed' })
  if (readOnly)
    faults.push({
      verdict: 'fail',
      text: 'the database takes no writes: it is a standby, or read-only by its settings',
      fix: 'give the URL of the primary; look at default_transaction_read_only',
    })
  if (roundTripMs > ROUND_TRIP_MS_MAX)
    faults.push({
      verdict: 'warn',
      text: `a round trip takes ${formatDuration(roundTripMs)}`,
      fix: 'run workers near the database: each cycle of a worker is a few round trips',
    })
  const well = `PostgreSQL ${version} answers within ${milliseconds(roundTripMs)}`
  return findingOf(faults, well, { version, roundTripMs, readOnly })
}

export function judgeDurability(settings: DatabaseSettings): Finding {
  const { fsync, fullPageWrites, synchronousCommit } = settings
  const faults: Fault[] = []
  if (!fsync)
    faults.push({
      verdict: 'fail',
      text: 'fsync is off: a crash of the machine can lose or destroy everything',
      fix: 'set fsync = on',
    })
  if (!fullPageWrites)
    faults.push({
      verdict: 'fail',
      text: 'full_page_writes is off: a crash of the machine can leave torn pages',
      fix: 'set full_page_writes = on',
    })
  if (synchronousCommit === 'off')
    faults.push({
      verdict: 'warn',
      text: 'synchronous_commit is off: a crash of the server loses jobs that it had confirmed in its last moments',
      fix: 'set synchronous_commit = on, at least for the roles that enqueue and work',
    })
  const well = `a commit that is answered survives a crash (synchronous_commit ${synchronousCommit})`
  return findingOf(faults, well, { fsync, fullPageWrites, synchronousCommit })
}

export function judgeIsolation({ isolation }: DatabaseSettings): Finding {
  const faults: Fault[] = []
  if (isolation !== 'read committed')
    faults.push({
      verdict: 'fail',
      text: `transactions of this role begin at ${isolation.toUpperCase()}, and claims are refused`,
      fix: "alter role … set default_transaction_isolation = 'read committed', for the roles that run workers",
    })
  return findingOf(faults, 'transactions begin at READ COMMITTED', { isolation })
}

/** One look at both clocks, by the machine's own. */
export interface ClockLook {
  sentMs: number
  receivedMs: number
  storeMs: number
}

/** What people and logs no longer overlook. */
const SKEW_MS_MAX = 1_000

/** The look with the shortest round trip says most: the store's clock was read at some moment of it. */
export function judgeClock(looks: readonly ClockLook[]): Finding {
  const best = looks.reduce((one, other) =>
    other.receivedMs - other.sentMs < one.receivedMs - one.sentMs ? other : one,
  )
  const uncertainMs = (best.receivedMs - best.sentMs) / 2
  const skewMs = (best.sentMs + best.receivedMs) / 2 - best.storeMs
  const surelyMs = Math.max(0, Math.abs(skewMs) - uncertainMs)
  const measured = { skewMs: Math.round(skewMs), uncertainMs: Math.ceil(uncertainMs) }
  if (surelyMs < SKEW_MS_MAX)
    return { verdict: 'ok', text: `the clocks agree within ${milliseconds(Math.abs(skewMs) + uncertainMs)}`, measured }
  return {
    verdict: 'warn',
    text: `this machine's clock is ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the store's`,
    measured,
    fix: 'keep both by NTP; leases and delays go by the store alone, but a runAt that is made here comes at another time',
  }
}

export function judgeHints(hints: 'arrive' | 'do not arrive'): Finding {
  if (hints === 'arrive')
    return { verdict: 'ok', text: 'hints arrive: idle workers hear of new jobs at once', measured: { hints } }
  return {
    verdict: 'warn',
    text: 'hints do not arrive, most likely because of a pooler in transaction mode: idle workers ask once a second',
    measured: { hints },
    fix: 'nothing is lost by it; for less delay give workers a URL that goes to the server itself',
  }
}

const FULL_SHARE = 0.95
const NEAR_SHARE = 0.8

export function judgeConnections(facts: readonly ConnectionFacts[], workers: readonly WorkerView[]): Finding {
  const wanted = workers.reduce((sum, { connections = 0 }) => sum + connections, 0)
  const faults = facts.flatMap(({ scope, max, open }): Fault[] => {
    const of = scope === 'server' ? 'the server' : `this ${scope}`
    if (open >= max * NEAR_SHARE)
      return [
        {
          verdict: open >= max * FULL_SHARE ? 'fail' : 'warn',
          text: `${open} of ${max} connections of ${of} are open`,
          fix: 'raise max_connections (or the limit of the role or database), or put a pooler before it',
        },
      ]
    if (wanted <= max) return []
    return [
      {
        verdict: 'warn',
        text: `the workers may open ${wanted} connections, and ${of} has ${max}`,
        fix: 'give connect() fewer connections, or raise max_connections',
      },
    ]
  })
  const [server] = facts
  const well = `${server?.open} of ${server?.max} connections are open; the workers alive may open ${wanted} in all`
  return findingOf(faults, well, { limits: facts, workers: wanted })
}

/** A claim, settlements, and upkeep beside them. */
const POOL_MIN = 3
/** To listen and to beat. */
const OWN_CONNECTIONS = 2

export function judgePools(workers: readonly WorkerView[]): Finding {
  const told = workers.filter(({ connections }) => connections !== undefined)
  const narrow = told.filter(({ connections }) => connections! - OWN_CONNECTIONS < POOL_MIN)
  const faults: Fault[] = narrow.map(({ name, connections, concurrency }) => ({
    verdict: 'warn',
    text: `${name} has ${many(connections! - OWN_CONNECTIONS, 'connection')} for ${many(concurrency, 'slot')}: claims, settlements and upkeep wait for each other`,
    fix: `connect(url, { connections: ${POOL_MIN} }) or more`,
  }))
  const well =
    told.length === 0
      ? 'no worker tells of its connections'
      : `${many(told.length, 'worker')}: each has connections enough`
  const pools = told.map(({ id, name, connections, concurrency }) => ({ id, name, connections, concurrency }))
  return findingOf(faults, well, { workers: pools })
}

/** The role of whoever looks is not always that of the workers: so it is a warning, and says whose rights they are. */
export function judgeAccess({ role, missing }: AccessFacts): Finding {
  if (missing.length === 0)
    return { verdict: 'ok', text: `role ${role} may do all that workers do`, measured: { role, missing } }
  return {
    verdict: 'warn',
    text: `role ${role}, by which you look, is none to work by; it cannot:`,
    measured: { role, missing },
    items: missing,
    fix: 'look by the role of the workers; rights are given by what "leasehold migrate --print-grants worker --to ROLE" prints',
  }
}

/** Somebody's addition that may refuse or change what the store writes. */
const MEDDLING = /^(?:constraint|trigger|rule|policy) /
const DIFFERENCES_SHOWN = 12

export function judgeDrift(differences: readonly Difference[], schema: string): Finding {
  const harm = differences.filter(({ kind, about }) => kind !== 'extra' || MEDDLING.test(about))
  const measured = { schema, differences }
  const name = `schema "${schema}"`
  if (harm.length === 0) {
    const added = differences.length === 0 ? '' : `, with ${many(differences.length, 'addition')} of somebody's`
    return { verdict: 'ok', text: `${name} is there, up to date, and as it was made${added}`, measured }
  }
  const more = harm.length - DIFFERENCES_SHOWN
  return {
    verdict: harm.some(({ kind }) => kind !== 'extra') ? 'fail' : 'warn',
    text: `${name} is not what was made of it:`,
    measured,
    items: [
      ...harm.slice(0, DIFFERENCES_SHOWN).map(({ sentence }) => sentence),
      ...(more > 0 ? [`and ${more} more`] : []),
    ],
    fix: 'put it back as "leasehold migrate --print" has it',
  }
}

/** Below a millisecond tenths count. */
function milliseconds(ms: number): string {
  return ms < 10 ? `${Math.ceil(ms * 10) / 10}ms` : formatDuration(ms)
}
