/**
 * What a handler can say other than "done" and "failed". A throw is a failure: the queue retries it with its backoff.
 * `retryAfter` is a failure whose wait the handler knows, `snooze` is no failure at all, `dead` ends the retries.
 */
import { connect, dead, defineJob, retryAfter, snooze, worker } from 'leasehold'
import { openStore } from './store.mjs'

const awaitPayment = defineJob('payment.await')
const callService = defineJob('service.call', { retry: { attempts: 3 } })
const inviteUser = defineJob('user.invite')

const store = await openStore()
const queue = await connect(store.url)

let looks = 0
const handlers = [
  // A payment that is pending for a while: looked at again and again, and no attempt is used up.
  awaitPayment.handle(({ payment }, { attempt }) => {
    looks += 1
    console.log(`look ${looks} at ${payment}: ${looks < 3 ? 'pending' : 'paid'} (attempt ${attempt})`)
    return looks < 3 ? snooze('200ms') : { paid: true }
  }),
  // A service that says when to come back, as a 429 with Retry-After does. This does use an attempt.
  callService.handle((_payload, { attempt }) => {
    if (attempt < 2) return retryAfter('300ms', 'the service answered 429')
    console.log(`the service answered at attempt ${attempt}`)
    return undefined
  }),
  // Nothing that a retry could mend.
  inviteUser.handle(({ to }) => dead(`${to} is no address`)),
]

const payment = await queue.enqueue(awaitPayment, { payment: 'pi_1' })
const call = await queue.enqueue(callService)
const invitation = await queue.enqueue(inviteUser, { to: 'nobody' })

const running = worker(queue, handlers)
await running.start()

const { paid } = await payment.result({ timeout: '20s' })
console.log(`paid: ${paid}`)
await call.result({ timeout: '20s' })
try {
  await invitation.result({ timeout: '20s' })
} catch (error) {
  console.log(`${error.code}, as ${error.cause.message}`)
}

await running.stop()
await queue.close()
await store.stop()
