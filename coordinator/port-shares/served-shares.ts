// Finds the shares that are served, and notifies of those that are not served any more.
import { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId } from '../../shared/ids.ts'
import type { Origin } from '../db/notification-hub.ts'
import { defineTopic, notify, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { canSee } from '../http/visibility.ts'
import { parsePolicy, subscribeToPolicies } from '../identity/policies/service.ts'
import { getServingRefusal, isLive, isOpenLink, type ShareSwitches } from './rules.ts'
import {
  endOpenLinksOfBox,
  endSharesOfBox,
  listLinkIds,
  prepareShareQueries,
  type ShareWithBox,
} from './store.ts'
import type { PortShares, ServedShare } from './types.ts'

export type ServedShares = Pick<PortShares, 'find' | 'get' | 'events'> & {
  /** Ends the shares of a box whose deletion has been requested. */
  onBoxDelete(trx: Trx, box: BoxRow, actor: string, now: number): Promise<void>
  /** Ends the links of a box that need no membership. */
  restrictBox(trx: Trx, boxId: string): Promise<void>
}

export type ServedSharesOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  switches: ShareSwitches
}

const ENDED_SHARES = defineTopic<{ shareId: string }>('ended shares')

/** Call it in the transaction that ends the share. */
export const recordShareEnd = (trx: Trx, shareId: string): void => notify(trx, ENDED_SHARES, { shareId })

export const createNoSuchShareError = (): ApiError =>
  new ApiError('not_found', 'No such link. GET /api/v1/port-shares lists the ids of all links.')

export function createServedShares(options: ServedSharesOptions): ServedShares {
  const { db, clock, log, switches } = options
  const queries = prepareShareQueries(db)
  const events: PortShares['events'] = new EventEmitter()

  const onGap = () => void events.emit('missed')
  subscribe(db, ENDED_SHARES, ({ shareId }, origin) => events.emit('ended', shareId, origin), { onGap })
  subscribeToPolicies(
    db,
    ({ workspaceId, policy, before }, origin) => {
      if (!before.shareLinks || policy.shareLinks) return
      endLinks(workspaceId, origin).catch((err: unknown) =>
        log.error({ err, workspaceId }, 'failed to close the open connections of links'),
      )
    },
    { onGap },
  )

  /** Open requests to the links end. The links stay in the database: they are served again when the policy allows them. */
  async function endLinks(workspaceId: string, origin: Origin): Promise<void> {
    for (const id of await listLinkIds(db, workspaceId, clock.now())) events.emit('ended', id, origin)
  }

  const isServable = (row: ShareWithBox): boolean =>
    isLive(row, clock.now()) && row.desired_state !== 'terminated'

  const getRefusal = ({ access, policy, restricted }: ShareWithBox): ApiError | null =>
    getServingRefusal(access, {
      switches,
      isRestricted: restricted === 1,
      policy: parsePolicy(isOpenLink(access) && policy !== null ? { policy } : undefined),
    })

  return {
    events,
    async find(slug) {
      const [row] = await queries.bySlug(slug)
      return row && isServable(row) && getRefusal(row) === null ? toServed(row) : undefined
    },
    async get(actor, shareId) {
      const [row] = isId('portShare', shareId) ? await queries.byId(shareId) : []
      if (!row || !isVisible(actor, row) || !isServable(row)) throw createNoSuchShareError()
      const refusal = getRefusal(row)
      if (refusal !== null) throw refusal
      return toServed(row)
    },
    async onBoxDelete(trx, { id }, _actor, now) {
      for (const shareId of await endSharesOfBox(trx, id, now)) recordShareEnd(trx, shareId)
    },
    async restrictBox(trx, boxId) {
      for (const shareId of await endOpenLinksOfBox(trx, boxId, clock.now())) recordShareEnd(trx, shareId)
    },
  }
}

const isVisible = (
  actor: Actor,
  { workspace_id: workspaceId, id: boxId, owner_user_id: ownerUserId }: BoxRow,
): boolean => canSee(actor, { workspaceId, boxId, ownerUserId })

/** The row stands for the box: a copy of the columns of boxes would take as long as the query. */
const toServed = (row: ShareWithBox): { share: ServedShare; box: BoxRow } => ({
  share: {
    id: row.share_id,
    workspaceId: row.workspace_id,
    boxId: row.id,
    port: row.port,
    slug: row.slug,
    access: row.access,
    secretHash: row.secret_hash,
    expiresAt: row.expires_at,
    rewritesHost: row.rewrites_host === 1,
  },
  box: row,
})
