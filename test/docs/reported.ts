/**
 * The faults that other job queues were reported to have, in our own words: the list that docs/cases.md is made from. A
 * line each: its id, the fault, what is promised here, and the parts of the product that are not there yet and owe the
 * rest. Used by cases-page.ts.
 */

export interface ReportedCase {
  readonly id: string
  readonly fault: string
  readonly promise: string
  readonly later: readonly string[]
}

export interface Section {
  readonly title: string
  readonly cases: readonly ReportedCase[]
}

/** What may owe a case: parts that are not there yet. */
export const LATER: readonly string[] = [
  'order keys',
  'limits',
  'tenants',
  'schedules',
  'isolation',
  'payload versions',
  'topics',
  'metrics',
  'dashboard',
  'Redis',
  'Amazon SQS',
  'outbox',
  'replacing keys',
]

const LIST = `
# Crashes, leases, heartbeats
B01 | Two outcomes for one job | Two workers ran one job: the one that lost its lease decides nothing, and is told so once
B03 | Job lost between fetch and lease | A worker killed at any step of taking jobs out loses none of them
B04 | Recovery works for some kinds only | Immediate, delayed, batched and last-attempt jobs of a dead worker are recovered by one rule | schedules, order keys
B06 | Judged dead, still running | A handler that others took for dead is signalled with its next beat; its end is refused
B08 | Lease expiry skips the retries | A lost lease is followed by the attempts that are left; the lost one is counted and noted
B09 | Delay longer than the lease runs twice | A delay of many leases is one start, at its time, held by nobody before
B10 | Store restart drops session locks | Sessions that die with the server cost no lease before its end
B12 | Ack of a job that is gone | The end of a job that is somebody else’s is reported once, never sent again, and holds no slot
B14 | The recoverer itself gets stuck | Whoever dies in the middle of a sweep leaves it to the next sweeper, within two seconds and a lease
B15 | Heartbeat fires as the job ends | Beats that meet the ends of short jobs lose nothing and leave nothing behind
B16 | Blocked event loop looks like a crash | A loop that computes for longer than the lease is told; its late end is refused, its neighbours run
B19 | Ghost record after a double run | After a double run of a job that leaves no record, nothing of it is left and its id is free
B20 | Claim by a worker already written off | To an identity that was written off nothing is given; its process goes on under a new one

# Start, stop, lost connections
B21 | Graceful stop kills running work | A stop takes no new job, lets the running ones end and leaves the others untouched
B22 | Stop leaves leases behind | What outlasts the grace is signalled, given back and started elsewhere, with nothing to recover
B23 | Stop hangs when the store was never reachable | A stop ends although the store was never there, and the process with it
B25 | Pausing many workers hangs | Many workers are paused, resumed and stopped together, and their connections go with them
B27 | Start and stop without a pause | Start and stop in any order settle; the last call wins
B29 | Signal lost in a wrapper | A signal to a package script or an entry point that hands over by exec drains the worker, a second one ends it
B30 | Dropped connection crashes the process | Connections that drop, idle or busy, end no process
B31 | Gives up after a long outage | After any outage work goes on by itself
B34 | Store down at start | A store that is down at the start is told of, and waited for
B35 | Fail-over to a read-only node | A server that turns read-only and back costs no job and no restart
B36 | Hot loop on a store error | A store that fails at once is asked ever more rarely
B37 | Pool too small starves heartbeats | Handlers that take all connections hold up neither beats nor settlements

# Delays and numbers
B39 | Timer limit of 2^31-1 ms | Delays, timers and time-outs of more than 2^31 ms are kept to, without a tight loop | schedules, limits
B41 | Negative delay | A negative delay is refused; an instant long past is due now, once
B43 | NaN and infinity in options | Numbers that mean nothing are refused by their field before anything is written
B44 | Waits forever when the next due time is very near | A job due at the moment a worker goes to sleep needs no other one to be found

# Schedules and time zones
B46 | Daylight-saving gap and overlap | A daily schedule runs once on the days on which clocks change, at a documented instant | schedules
B49 | No further runs after crossing the gap | A schedule goes on after an hour that was left out | schedules
B50 | Host time zone leaks in | The time zone of the host changes no instant of a schedule | schedules
B51 | Date that can never come | A date that never comes is refused when it is registered | schedules
B53 | Timer fires a little early | A timer that fires a little early makes neither two jobs of one tick nor none | schedules
B55 | Lagging scheduler clock repeats a slot | A scheduler whose clock lags makes one job a tick | schedules
B57 | Wrong number of runs after downtime | After downtime exactly as many missed ticks run as the policy says | schedules
B59 | Busy process repeats and skips | A blocked process repeats no tick, and misses none but by policy | schedules
B61 | Long interval, frequent restarts | A long interval is kept over any number of restarts | schedules
B62 | Only the schedules of the leader run | Every schedule runs, whoever registered it | schedules
B63 | Leader with half of its duties | There is no leader: a duty that fails once is tried again, and holds no other one up | schedules
B64 | Deleted schedule fires again | A schedule that was deleted starts nothing any more | schedules
B66 | Clearing delayed jobs kills the schedule | Purging delayed jobs does not end a schedule | schedules
B67 | Edit leaves the old version active | After a change of a schedule only the new version runs | schedules
B69 | Retries and restarts multiply the schedule | Retries and restarts make no second instance of a schedule | schedules
B70 | Schedule removed by its own run | A handler may delete or replace its own schedule | schedules
B71 | Busy workers hold up the clock | Ticks are enqueued in time although all slots are busy | schedules
B72 | Regained leadership doubles schedules | However often a process comes and goes, a tick is one job | schedules
B73 | Recovered cron job starves | A run that was lost with its worker does not keep its schedule from the next tick | schedules
B74 | Time stored without zone | An instant is the same one, however it is written and wherever the server is
B75 | Wall-clock promise and rule changes | It is said whether an instant or a wall time is kept, and that is kept | schedules

# Keys
B76 | Key held for ever | No end of a job leaves its key locked
B79 | Keyed enqueue lost under contention | Where a later enqueue replaces the payload of a waiting job, the last one is run | replacing keys
B80 | Replace while running piles up | While a job of a key runs, at most one more waits | replacing keys
B82 | Concurrent first use of a key | Of many first uses of a key one makes the job, and all hear its id
B84 | Throttled job vanishes silently | What is throttled or merged is told, and into which job | replacing keys
B85 | Long key breaks the insert | Long keys are exact, or refused with the limit
B87 | One duplicate spoils the batch | Duplicates in a batch are told in their places and spoil nothing

# Retries, dead letters, poison
B88 | Back-off overflow | Delays between attempts are finite, never shrink, keep to a cap, and are stored as they are
B90 | Retry forgets the priority | A job that comes back keeps its priority and key, and goes before what is less urgent | order keys, tenants
B91 | Crash limit ignores the retry policy | A job that kills its workers is backed off, then quarantined with reason and count, and redrivable
B92 | Final loss skips hooks and events | However a job runs out of attempts, there is one event and one dead letter, with the reason | metrics
B93 | Poison at the head of the queue | Poison at the head of a queue stops nobody behind it
B95 | Exhausted message deleted | A message that used up its receives is a dead letter, never deleted | Amazon SQS
B97 | Back-off without attempts | A backoff without a number of attempts has the default number

# Payloads, results, errors
B98 | Thrown error that cannot be serialised | An error that holds what JSON cannot fails its job by its own words
B100 | NUL character | NUL anywhere has one documented outcome, and the job its right end
B103 | BigInt, Date, undefined, Map in the payload | What is not plain JSON is refused by its path; undefined and -0 change by one rule
B104 | Prototype keys | Prototype keys are data, and reach no prototype and no option | payload versions
B105 | Isolated handler hides the real error | An isolated handler’s own error, exit code or signal is what is stored | isolation
B106 | Empty values read back badly | Empty payloads and results come back as they were | dashboard
B107 | Something that is not an Error | Whatever is thrown fails the attempt with a text to read
B108 | Errors pile up per attempt | Thousands of failures with huge errors take the room of twenty
B109 | Very large payload | A payload works up to the limit, to the byte; above it the error tells limit and size

# Inside PostgreSQL
B111 | Prune and sweep deadlock | Pruning and sweeping by many at once deadlock with nobody
B112 | Bulk enqueue against bulk ack | Bulk enqueues of the same keys in any order, settlements and cancels deadlock with nobody
B113 | Claim gets slow with volume | Claims, promotion and lists touch no more pages when more waits, is delayed or has ended | tenants
B116 | Our own connections hold back vacuum | No session of ours is idle in a transaction or keeps an old snapshot
B117 | Metrics are the heaviest query | Counts for people read no further when more has ended | metrics, dashboard
B119 | States that are never pruned | Every kind of record is pruned in the end
B120 | Id sequence runs out | Nothing is used up by asking, and numbers go on beyond 2^31
B122 | Name length limits | A name works everywhere up to its limit, or is refused with the rule; no two are merged | schedules, tenants, topics
B123 | Bulk above the parameter limit | 200,000 jobs in one call are stored, in order, all or none in a transaction

# Schemas, privileges, poolers
B124 | Upper case and quotes in the schema name | Any schema name is its own installation, or refused
B127 | Killed in the middle of a migration | A migration killed at any statement is finished by the next one
B128 | Old rows break the upgrade | An upgrade takes old rows along while old workers go on
B129 | All migrations in one transaction | The printed migrations work in one transaction
B130 | Least privilege | Workers, producers and viewers need no more rights than theirs
B131 | Concurrent migrators | Many migrators at once apply each step once
B132 | Transaction pooler breaks session features | Through a pooler in transaction mode everything works that has to, and hints give way to polling
B133 | Prepared statements through a pooler | Prepared statements through a pooler cause no error that a caller sees

# Priority, order, limits, slots
B134 | Low priority starves | A low priority gets one start in sixteen, however many urgent jobs keep coming | tenants
B135 | Recovered job loses its rank | A job that is recovered has the rank that it had
B136 | Retry breaks the order of a key | A retry keeps the order of its key, and no other key waits for it | order keys
B138 | Order lost after a failure in a batch | In an ordered group nothing is handled before what failed ahead of it | Amazon SQS
B140 | Limit not kept at start-up | A limit holds from the first moment on | limits
B141 | Rate limit at window edges | A rate holds in every window, also at its edges | limits
B144 | Waits although a slot is free | A job never waits for longer than a poll while its slot is free | limits
B146 | Slow job blocks its batch | A slow job does not hold up the other slots
B147 | Claimed too early | Nothing is claimed ahead of what can start within the lease, or while somebody else is free

# Cancel and time-out
B148 | Time-out does not stop the handler | A time-out ends the attempt, and the slot stays taken until the code ends
B149 | Cancel races the claim | A cancel that meets a claim or an end answers what is true
B151 | Cancel forgotten over a restart | A cancel outlives processes, workers and the store
B152 | Hung handler with live heartbeats | A handler that never ends is ended by its time-out | metrics

# Results, events, fan-out
B154 | Waiting for a job that is already done | Waits for jobs that ended long ago, or end just now, all settle
B156 | Loser of the race reports success | Who lost a race for a key says so; one tells that it enqueued | schedules
B157 | One listener per wait | Thousands of waits share one listener and leave nothing
B159 | Half a fan-out | An event goes to all of its subscriptions or to none | topics
B160 | Subscriber away | A subscription that is away misses nothing | topics

# Metrics and memory
B161 | Unbounded labels | The number of series depends on no id, error or key | metrics
B163 | Depth counted in several processes | Depth is counted by the store, whichever process shows it | metrics
B164 | Slow leak | Failures, time-outs and cancels leave no heap, timer or handle behind

# Dashboard
B166 | Stored script injection | Nothing that a job brings along is run by a browser | dashboard
B168 | Forged requests | Nothing is changed by a request that another site forged | dashboard
B169 | Open by default, shows private data | Without access control nobody but the machine itself is answered, and secrets are masked | dashboard
B170 | Path prefix | It works under any path, and behind any proxy | dashboard

# Amazon SQS and Redis
B173 | Partial failure of a batch call | Of a batch call only what is said to be done counts as done | Amazon SQS
B174 | One failure redelivers the whole batch | One failure in a batch brings no other message back | Amazon SQS
B175 | Batch too large | Batches are split by count and by bytes | Amazon SQS
B177 | Delay above 15 minutes | Delays of any length are kept, whatever one message may wait | Amazon SQS
B179 | Eviction and full memory | A store that is full or evicts is told of, and loses nothing that runs | Redis

# Transactions and versions
B181 | Job visible before commit | A job of a transaction starts after its commit, soon, and never after a rollback | Redis, Amazon SQS
B183 | Lost between commit and send | Between a commit and its job there is no gap | outbox
B185 | Unknown kind spins or sticks | Kinds that nobody knows are left alone, are seen, and hold up nobody
`

function caseOf(line: string): ReportedCase {
  const [id, fault, promise, later] = line.split(' | ')
  return { id: id!, fault: fault!, promise: promise!, later: later?.split(', ') ?? [] }
}

function sectionOf(text: string): Section {
  const [title, ...lines] = text.trim().split('\n')
  return { title: title!, cases: lines.map(caseOf) }
}

export const SECTIONS: readonly Section[] = LIST.split('# ').slice(1).map(sectionOf)
