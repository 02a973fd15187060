// The messages of a feed, as JSON.
import type { FeedKind } from '../../shared/api/feed.ts'
import { LIMITS } from '../../shared/limits.ts'

/** Splits the JSON of items into messages of a bounded length. A message has at least one item. */
function* splitItems(items: readonly string[]): Generator<string> {
  let part: string[] = []
  let length = 0
  for (const item of items) {
    if (
      part.length === LIMITS.feedMessage.items ||
      (part.length > 0 && length + item.length > LIMITS.feedMessage.chars)
    ) {
      yield part.join(',')
      part = []
      length = 0
    }
    part.push(item)
    length += item.length
  }
  if (part.length > 0) yield part.join(',')
}

export function* createItemsMessages(kind: FeedKind, items: readonly string[]): Generator<string> {
  for (const part of splitItems(items)) yield `{"type":"items","kind":"${kind}","items":[${part}]}`
}

export function* createChangedMessages(
  kind: FeedKind,
  { shown, removed }: { shown: readonly string[]; removed: readonly string[] },
  at: string,
): Generator<string> {
  const create = (items: string, ids: string) =>
    `{"type":"changed","kind":"${kind}","items":[${items}],"removed":[${ids}],"at":"${at}"}`
  for (const part of splitItems(removed.map((id) => JSON.stringify(id)))) yield create('', part)
  for (const part of splitItems(shown)) yield create(part, '')
}
