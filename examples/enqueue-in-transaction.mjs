/**
 * A job that belongs to a row: both are there when the transaction commits, and neither is when it does not. Without
 * this, a crash between two commits leaves an order without its mail, or a mail about an order that never was.
 */
import { connect, defineJob, worker } from 'leasehold'
import pg from 'pg'
import { openStore } from './store.mjs'

const confirmOrder = defineJob('order.confirm', { queue: 'orders' })

const store = await openStore()
const queue = await connect(store.url)
const database = new pg.Client(store.url)
await database.connect()
await database.query('create table if not exists example_order (id text primary key)')
await database.query('delete from example_order')

async function placeOrder(id, { paid }) {
  await database.query('begin')
  try {
    await database.query('insert into example_order (id) values ($1)', [id])
    await queue.enqueue(confirmOrder, { id }, { tx: database })
    // Something goes wrong after the enqueue.
    if (!paid) throw new Error('the card was refused')
    await database.query('commit')
  } catch (error) {
    await database.query('rollback')
    console.log(`order ${id}: ${error.message}, rolled back`)
  }
}

await placeOrder('A-1', { paid: true })
await placeOrder('A-2', { paid: false })

const confirm = confirmOrder.handle(async ({ id }) => {
  const { rows } = await database.query('select id from example_order where id = $1', [id])
  console.log(`order ${id}: confirmed, its row is ${rows.length === 1 ? 'there' : 'missing'}`)
})
const { completed } = await worker(queue, [confirm]).runUntilEmpty()
console.log(`${completed} job ran`)

await database.end()
await queue.close()
await store.stop()
