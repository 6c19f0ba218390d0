/** The job of the demo, as an application would write it: deliver a webhook. Used by the demo and its workers. */
import { dead, type HandlerContext } from '../../core/handler.js'
import { defineJob } from '../../core/kind.js'
import type { Delivery } from './plan.js'
import type { ReceiverReady } from './receiver.js'

export const WEBHOOKS = 'webhooks'

export interface Webhook {
  url: string
  event: string
  delivery: number
}

export const deliverWebhook = defineJob<Webhook, { status: number }>('webhook.deliver', {
  queue: WEBHOOKS,
  timeout: '3s',
  // Six attempts within seven seconds: a demo cannot wait for the default, which starts at two seconds.
  retry: { attempts: 6, backoff: { base: '200ms' } },
})

export const deliverWebhookHandler = deliverWebhook.handle(async (webhook, context) => {
  const response = await post(webhook, context)
  // The receiver wants no more of these: there is nothing to be gained by trying again.
  if (response.status === 410) return dead('the receiver answered 410 Gone')
  if (!response.ok) throw new Error(`the receiver answered ${response.status}`)
  return { status: response.status }
})

async function post(webhook: Webhook, context: HandlerContext): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    // With it the receiver knows a repeat; with the fence, a sender that has lost the job without knowing it yet.
    'idempotency-key': context.idempotencyKey ?? context.id,
    'leasehold-fence': String(context.fence),
    'leasehold-job': context.id,
    'leasehold-attempt': String(context.attempt),
  }
  try {
    const body = JSON.stringify(webhook)
    const response = await fetch(webhook.url, { method: 'POST', headers, body, signal: context.signal })
    // Read to its end, so that the connection can be used again.
    await response.arrayBuffer()
    return response
  } catch (error) {
    // fetch says no more than that it failed; why is in the cause.
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    throw new Error(`no connection: ${code ?? (error as Error).message}`, { cause: error })
  }
}

export function webhookOf(delivery: Delivery, receiver: ReceiverReady): Webhook {
  const { customer, endpoint, number } = delivery
  const base = endpoint === 'refused' ? receiver.refused : receiver.live
  const path = endpoint === 'broken' || endpoint === 'gone' ? endpoint : customer
  return { url: `${base}/hooks/${path}`, event: 'invoice.paid', delivery: number }
}
