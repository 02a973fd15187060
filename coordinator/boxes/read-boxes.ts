// Lists boxes and reads one in detail (spec §4.3).
import type { Box, BoxDetail, BoxList, ListBoxesQuery, Vitals } from '../../shared/api/boxes.ts'
import type { Capacity } from '../../shared/tiers.ts'
import { isUuid } from '../../shared/uuid.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { readPages } from '../http/json-pages.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import { getVisibility } from '../http/visibility.ts'
import type { BoxEnvironments } from './box-hooks.ts'
import { presentBox, presentDetail } from './present.ts'
import { listBoxes } from './store/box-lists.ts'
import { listBoxEvents } from './store/events.ts'
import { findJob } from './store/jobs.ts'

export type BoxListOptions = Pick<ListBoxesQuery, 'live' | 'box' | 'deleted' | 'label'>

export type BoxReaderOptions = {
  db: Db
  finder: Pick<BoxFinder, 'find'>
  boxEnvironments: Pick<BoxEnvironments, 'describe'>
  /** Whether the box's agent has a tunnel open. */
  isConnected(boxId: string): boolean
  /** The machine on which all managed boxes of the region of this box run. undefined: each has a machine of its own, or it is not known. */
  getCapacity(box: Pick<BoxRow, 'region' | 'host'>): Capacity | undefined
  /** The latest heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
}

export function createBoxReader(options: BoxReaderOptions) {
  const { db, finder, boxEnvironments, isConnected, latestHeartbeat, getCapacity } = options
  const visibleTo = (actor: Actor) => ({
    visibility: getVisibility(actor),
    // Spec §4.3.
    withoutDeleted: actor.credential.type === 'ticket',
  })

  const toFilter = (actor: Actor, { live = false, box, deleted, label: labels }: BoxListOptions) => ({
    ...visibleTo(actor),
    live,
    box,
    deleted,
    labels,
  })

  async function* listPages(actor: Actor, options: BoxListOptions = {}): AsyncGenerator<Box[]> {
    const filter = toFilter(actor, options)
    for await (const rows of readPages((page) => listBoxes(db, { ...filter, ...page })))
      yield rows.map(presentBox)
  }

  async function list(actor: Actor, options?: BoxListOptions): Promise<Box[]> {
    const boxes: Box[] = []
    for await (const page of listPages(actor, options)) boxes.push(...page)
    return boxes
  }

  async function listPage(
    actor: Actor,
    { limit, before: cursor, ...options }: ListBoxesQuery & { limit: number },
  ): Promise<BoxList> {
    const before = cursor === undefined ? undefined : parseCursor(cursor, isUuid)
    const rows = await listBoxes(db, { ...toFilter(actor, options), before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      boxes: page.map(presentBox),
      nextBefore: rows.length > limit && last ? encodeCursor({ at: last.created_at, id: last.id }) : null,
    }
  }

  async function get(actor: Actor, id: string): Promise<BoxDetail> {
    const box = await finder.find(actor, id)
    const [events, job, environment] = await Promise.all([
      listBoxEvents(db, id),
      findJob(db, id),
      boxEnvironments.describe(db, box),
    ])
    const [connected, heartbeat] = [isConnected(id), latestHeartbeat(id)]
    const capacity = getCapacity(box)
    return presentDetail({ box, events, job, connected, heartbeat, capacity, environment })
  }

  return { list, listPages, listPage, get }
}
