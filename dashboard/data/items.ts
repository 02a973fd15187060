// The items of the feed: what the pages show is replaced when a new snapshot of all items is complete.
import type { Box } from '../../shared/api/boxes.ts'
import type { FeedKind, FeedMessage } from '../../shared/api/feed.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'

export type Boxes = ReadonlyMap<string, Box>
type ItemOf = { boxes: Box; snapshots: Snapshot; operations: Operation }
export type Items = { [Kind in FeedKind]: ReadonlyMap<string, ItemOf[Kind]> }

/** @param show is called with the kinds that have changed, all of them when the feed has sent everything */
export function createItemCollector(show: (changed: Partial<Items>) => void) {
  const maps = { boxes: new Map(), snapshots: new Map(), operations: new Map() }
  let isComplete = false
  return (message: FeedMessage): void => {
    if (message.type === 'ready') {
      isComplete = true
      show({ ...maps })
    } else if (message.type !== 'alive') {
      const { kind, items } = message
      // What was shown does not change.
      const map = isComplete ? new Map(maps[kind]) : maps[kind]
      for (const item of items) map.set(item.id, item)
      if (message.type === 'changed') for (const id of message.removed) map.delete(id)
      maps[kind] = map
      if (isComplete) show({ [kind]: map })
    }
  }
}

export const SORTS = { name: 'Name', state: 'State', owner: 'Owner', changed: 'Last change' } as const
export type Sort = keyof typeof SORTS

/** @param filter words that the name, the state, the tier or the kind of a box must contain */
export function selectBoxes(boxes: Boxes, filter: string, sort: Sort): Box[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = ({ hostname, observedState, tier, kind, region }: Box) => {
    const text = [hostname, formatState(observedState), tier, kind, region].join(' ')
    return words.every((word) => text.includes(word))
  }
  return [...boxes.values()]
    .filter(matches)
    .sort((a, b) => COMPARE[sort](a, b) || compare(a.hostname, b.hostname))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const COMPARE: Record<Sort, (a: Box, b: Box) => number> = {
  name: () => 0,
  state: (a, b) => compare(a.observedState, b.observedState),
  owner: (a, b) => compare(a.ownerUserId, b.ownerUserId),
  changed: (a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt),
}

export const formatState = (state: string): string => state.replaceAll('_', ' ')

export type Action = 'wake' | 'suspend' | 'fork' | 'snapshot' | 'delete'

const ASLEEP = ['suspended', 'deep_sleep']

/** The actions that are offered. The coordinator decides whether they are possible. */
export function listActions({ kind, observedState, desiredState }: Box): Action[] {
  if (desiredState === 'terminated') return []
  if (kind === 'machine' || observedState === 'provision_failed') return ['delete']
  if (ASLEEP.includes(observedState)) return ['wake', 'fork', 'snapshot', 'delete']
  if (observedState === 'running') return ['suspend', 'fork', 'snapshot', 'delete']
  return ['delete']
}
