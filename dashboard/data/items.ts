// The items of the feed: what the pages show is replaced when a new snapshot of all items is complete.
import type { Box } from '../../shared/api/boxes.ts'
import type { FeedKind, FeedMessage } from '../../shared/api/feed.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { TeamBox } from '../../shared/api/team.ts'

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

export const SORTS = {
  name: 'Name',
  state: 'State',
  owner: 'Owner',
  usage: 'CPU',
  activity: 'Last activity',
} as const
export type Sort = keyof typeof SORTS

/** What the list shows beside the boxes of the feed. */
export type Team = ReadonlyMap<string, TeamBox>

/** The name of the owner of a box, as far as it is known. */
export const getOwner = ({ id, ownerUserId }: Box, team: Team): string => {
  const member = team.get(id)
  // The box may have another owner since.
  return member?.ownerUserId === ownerUserId
    ? (member.ownerEmail ?? member.ownerName ?? ownerUserId)
    : ownerUserId
}

/** The last change, command or prompt of a box. */
export function getLastActivity({ id, updatedAt }: Box, team: Team): string {
  const { lastExecAt = null, lastPromptAt = null } = team.get(id) ?? {}
  return [lastExecAt, lastPromptAt].reduce<string>(
    (latest, at) => (at !== null && Date.parse(at) > Date.parse(latest) ? at : latest),
    updatedAt,
  )
}

/** Such as `team=web`; the key alone where the value is empty. */
export const formatLabels = ({ labels = {} }: Pick<Box, 'labels'>): string[] =>
  Object.entries(labels).map(([key, value]) => (value === '' ? key : `${key}=${value}`))

/** @param filter words that the name, the state, the tier, the kind, the region, the labels or the owner of a box must contain */
export function selectBoxes(boxes: Boxes, filter: string, sort: Sort, team: Team = new Map()): Box[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (box: Box) => {
    const { hostname, observedState, tier, kind, region } = box
    const fields = [hostname, formatState(observedState), tier, kind, region, getOwner(box, team)]
    const text = [...fields, ...formatLabels(box)].join(' ')
    return words.every((word) => text.toLowerCase().includes(word))
  }
  const shown = words.length === 0 ? [...boxes.values()] : [...boxes.values()].filter(matches)
  // Each value is computed once, not in each comparison.
  const keys = new Map(shown.map((box) => [box, SORT_KEYS[sort](box, team)]))
  return shown.sort(
    (a, b) => compare(keys.get(a) ?? '', keys.get(b) ?? '') || compare(a.hostname, b.hostname),
  )
}

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)

const SORT_KEYS: Record<Sort, (box: Box, team: Team) => string | number> = {
  name: () => 0,
  state: ({ observedState }) => observedState,
  owner: getOwner,
  usage: ({ id }, team) => -(team.get(id)?.cpuPct ?? -1),
  activity: (box, team) => -Date.parse(getLastActivity(box, team)),
}

export const formatState = (state: string): string => state.replaceAll('_', ' ')

export type Action = 'wake' | 'suspend' | 'fork' | 'snapshot' | 'delete'

/** The observed states of a box that a wake continues. */
export const ASLEEP: readonly string[] = ['suspended', 'deep_sleep']

/** The actions that are offered. The coordinator decides whether they are possible. */
export function listActions({ kind, observedState, desiredState }: Box): Action[] {
  if (desiredState === 'terminated') return []
  if (kind === 'machine' || observedState === 'provision_failed') return ['delete']
  if (ASLEEP.includes(observedState)) return ['wake', 'fork', 'snapshot', 'delete']
  if (observedState === 'running') return ['suspend', 'fork', 'snapshot', 'delete']
  return ['delete']
}

export type Setting = 'rename' | 'give' | 'schedule' | 'resize' | 'move' | 'template' | 'stop'

/** What the page of a box offers beside its actions. */
export function listSettings({ kind, observedState, desiredState, suspendedAs }: Box): Setting[] {
  if (desiredState === 'terminated') return []
  const always: Setting[] = ['rename', 'give']
  if (kind === 'machine') return always
  if (observedState === 'running') return [...always, 'schedule', 'resize', 'move', 'template', 'stop']
  if (observedState === 'suspended')
    return [
      ...always,
      'schedule',
      'resize',
      'move',
      'template',
      ...(suspendedAs === 'frozen' ? (['stop'] as const) : []),
    ]
  if (observedState === 'deep_sleep') return [...always, 'schedule', 'template']
  return always
}

/** The owner of a box and owners of the workspace give it to another member. */
export const mayGive = (
  { ownerUserId }: Pick<Box, 'ownerUserId'>,
  { id, role }: Pick<CurrentSession['user'], 'id' | 'role'>,
): boolean => role === 'owner' || (role === 'member' && id === ownerUserId)
