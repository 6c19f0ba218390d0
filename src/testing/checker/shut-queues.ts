/** Whether a pause or a drain surely held at an instant. Pure; called by the rules about both. */
import type { QueueAsk, Scene } from './story.js'

/** When it may have ended; undefined when at that instant none surely held. */
export function shutSince(
  { queueAsks }: Scene,
  queue: string,
  operation: 'pause' | 'refuse',
  at: number,
): number | undefined {
  const own = queueAsks.filter((ask) => ask.queue === queue)
  const shut = own.findLast((ask) => ask.operation === operation && answeredAt(ask) < at)
  if (shut === undefined) return undefined
  // One that was under way while it was asked for may have been done after it; one that was never answered, at any time.
  const opened = own.filter((ask) => ask.operation === 'resume' && answeredAt(ask) >= shut.askedAt)
  const until = Math.min(Number.POSITIVE_INFINITY, ...opened.map(({ askedAt }) => askedAt))
  return until > at ? until : undefined
}

function answeredAt(ask: QueueAsk): number {
  return ask.answeredAt ?? Number.POSITIVE_INFINITY
}
