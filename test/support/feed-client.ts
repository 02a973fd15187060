// A client of GET /feed: keeps the items as a dashboard does.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { FEED_KINDS, type FeedKind, type FeedMessage, feedMessageSchema } from '../../shared/api/feed.ts'
import { RefusedError } from './attach-client.ts'
import { DEADLINE_MS, waitUntil } from './wait-until.ts'

type Item = { id: string }

export type FeedClient = Awaited<ReturnType<typeof connectFeed>>

/**
 * Resolves when the handshake is complete. Rejects with RefusedError. A message that the schema does not describe is an
 * uncaught error, which fails the test.
 * @param url of the coordinator
 */
export async function connectFeed(
  t: Test,
  url: string,
  headers: Record<string, string>,
  { query = '' }: { query?: string } = {},
) {
  const ws = new WebSocket(`${url.replace(/^http/, 'ws')}/api/v1/feed${query}`, {
    headers,
    handshakeTimeout: DEADLINE_MS,
  })
  t.teardown(() => ws.terminate())
  const messages: FeedMessage[] = []
  const items = new Map<FeedKind, Map<string, Item>>(FEED_KINDS.map((kind) => [kind, new Map()]))
  let isReady = false
  ws.on('error', () => undefined)
  ws.on('message', (data: Buffer) => {
    const message = feedMessageSchema.parse(JSON.parse(data.toString()))
    messages.push(message)
    if (message.type === 'ready') isReady = true
    if (message.type !== 'items' && message.type !== 'changed') return
    const ofKind = items.get(message.kind)
    for (const item of message.items) ofKind?.set(item.id, item)
    if (message.type === 'changed') for (const id of message.removed) ofKind?.delete(id)
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  const refused = once(ws, 'unexpected-response').then(async ([request, response]) => {
    const text = Buffer.concat(await (response as IncomingMessage).toArray()).toString()
    request.destroy()
    throw new RefusedError(response.statusCode ?? 0, text)
  })
  refused.catch(() => undefined)
  await Promise.race([once(ws, 'open'), refused])

  return {
    ws,
    messages,
    closed,
    /** The items of a kind, sorted by id. */
    list: (kind: FeedKind) => [...(items.get(kind)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1)),
    get: (kind: FeedKind, id: string): unknown => items.get(kind)?.get(id),
    /** Resolves when all first items have arrived. */
    ready: () => waitUntil('the feed is ready', () => isReady),
  }
}
