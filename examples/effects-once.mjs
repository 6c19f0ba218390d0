/**
 * Once for each order, though everything may happen twice. A producer that got no answer asks again: the idempotency
 * key makes one job of it. A worker that dies after its effect has its job run again: the same key, written in the
 * transaction of the effect, makes one effect of it.
 */
import { connect, defineJob, worker } from 'leasehold'
import pg from 'pg'
import { openStore } from './store.mjs'

const charge = defineJob('card.charge', {
  queue: 'payments',
  idempotencyKey: ({ order }) => `charge:${order}`,
  retry: { attempts: 3, backoff: { base: '100ms' } },
})

const store = await openStore()
const queue = await connect(store.url)
const database = new pg.Pool({ connectionString: store.url })
await database.query('create table if not exists example_charge (key text primary key, cents int not null)')
await database.query('delete from example_charge')

const order = `order-${process.pid}`
const first = await queue.enqueue(charge, { order, cents: 4_200 })
const again = await queue.enqueue(charge, { order, cents: 4_200 })
console.log(`enqueued twice, ${first.id === again.id ? 'one job' : 'two jobs'}; duplicate: ${again.duplicate}`)

const handler = charge.handle(async ({ cents }, { idempotencyKey, attempt }) => {
  const insert = 'insert into example_charge (key, cents) values ($1, $2) on conflict do nothing'
  const { rowCount } = await database.query(insert, [idempotencyKey, cents])
  console.log(`attempt ${attempt}: ${rowCount === 1 ? 'charged' : 'was charged before'}`)
  // After the effect and before the queue knows: the worst moment to fail.
  if (attempt === 1) throw new Error('the connection broke')
})
const running = worker(queue, [handler])
await running.start()
await first.result({ timeout: '20s' })
await running.stop()

const { rows } = await database.query('select count(*)::int as charges from example_charge')
console.log(`charges: ${rows[0].charges}`)

await database.end()
await queue.close()
await store.stop()
