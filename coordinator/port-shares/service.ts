// Creates, lists and revokes the shares of ports (spec §4.5), and deletes those that have ended.
import {
  type CreatePortShareRequest,
  type CreatePortShareResponse,
  type ListPortSharesQuery,
  PORT_AUDIENCES,
  type PortShare,
  type PortShareList,
  type PortShareMode,
} from '../../shared/api/port-shares.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isId, newId } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Admit } from '../admission/admit.ts'
import { recordAuditEvent } from '../audit/service.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, PortShareRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { hashSecret } from '../http/hash-secret.ts'
import { readPages } from '../http/json-pages.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import { canSee, getVisibility } from '../http/visibility.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { loadPolicy } from '../identity/policies/service.ts'
import { presentShare } from './present.ts'
import {
  getAccessRefusal,
  getLimitRefusal,
  getServingRefusal,
  isLive,
  isOpenLink,
  type ShareFacts,
  type ShareSwitches,
} from './rules.ts'
import { newLinkSecret, newSlug } from './secrets.ts'
import { createNoSuchShareError, recordShareEnd } from './served-shares.ts'
import {
  deleteSharesEndedBefore,
  endExpiredShares,
  endShare,
  findShare,
  insertShare,
  listLinkIds,
  listLiveShares,
  lockShareOfPort,
  updateShare,
} from './store.ts'
import type { ShareBase } from './types.ts'

export type PortShareService = {
  /**
   * @returns isNew: false when the port has such a link already
   * @throws ApiError not_found, the refusals of rules.ts and those of `admit`
   */
  create(
    actor: Actor,
    boxId: string,
    input: CreatePortShareRequest,
  ): Promise<{ isNew: boolean; response: CreatePortShareResponse }>
  /**
   * The switches of this deployment, and what create() would respond for each audience.
   * @param box absent: for a box that is not restricted
   */
  describe(
    actor: Actor,
    box?: Pick<BoxRow, 'restricted'>,
  ): Promise<Pick<PortShareList, 'enabled' | 'linksEnabled' | 'modes'>>
  /** The live shares of a box, oldest first, for a response. The caller has checked that the actor sees the box. */
  listOfBox(boxId: string): AsyncIterable<PortShare[]>
  /** The live shares of all boxes that the actor sees, oldest first, for a response. */
  listAll(actor: Actor): AsyncIterable<PortShare[]>
  /** A page of them, newest first. @throws ApiError invalid_cursor */
  listPage(actor: Actor, query: ListPortSharesQuery): Promise<Pick<PortShareList, 'shares' | 'nextBefore'>>
  /** Idempotent. Throws not_found for an unknown share, and for one of a box that the actor does not see. */
  revoke(actor: Actor, id: string): Promise<void>
  /** Ends the links that have expired, and deletes the shares that ended 30 days ago. Returns the number of deleted shares. */
  prune(signal: AbortSignal): Promise<number>
}

export type PortShareServiceOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'lockLive'>
  base: ShareBase
  switches: ShareSwitches
  admit: Admit
  confirmActor: ConfirmActor
}

const RETENTION_MS = 30 * 24 * 60 * 60_000
const PRUNE_BATCH_SIZE = 500

export function createPortShareService(options: PortShareServiceOptions): PortShareService {
  const { db, clock, boxes, base, switches, admit, confirmActor } = options

  const loadFacts = async (
    trx: Trx,
    workspaceId: string,
    box: Pick<BoxRow, 'restricted'> | undefined,
  ): Promise<ShareFacts> => ({
    switches,
    policy: await loadPolicy(trx, workspaceId),
    isRestricted: box?.restricted === 1,
  })

  const create: PortShareService['create'] = (actor, boxId, input) =>
    transaction(db, async (trx) => {
      const { port, access } = input
      const now = clock.now()
      const box = await boxes.lockLive(trx, actor, boxId)
      // Also locks the workspace: of concurrent requests, only as many succeed as the limit allows.
      await confirmActor(trx, actor, now)
      const facts = await loadFacts(trx, box.workspace_id, box)
      const current = await lockShareOfPort(trx, boxId, port)
      const live = current && isLive(current, now) ? current : undefined
      if (live && (access === undefined || access === live.access)) {
        // The link exists: only what would not be served is refused (spec §4.5).
        assertAllowed(getServingRefusal(live.access, facts))
        await admit(trx, actor, { action: 'share', access: live.access })
        const row = await applyRewriteHost(trx, actor, live, input.rewriteHost)
        return { isNew: false, response: { share: presentShare(row, box, { base }) } }
      }
      const created = createRow(actor, box, { ...input, access: access ?? 'members' }, now)
      assertAllowed(getAccessRefusal(created.row.access, actor, facts))
      const links = await listLinkIds(trx, box.workspace_id, now)
      const others = links.filter((id) => id !== live?.id)
      assertAllowed(getLimitRefusal(created.row.access, others.length))
      await admit(trx, actor, { action: 'share', access: created.row.access })
      if (current) await endShare(trx, current.id, now)
      if (live) {
        record(trx, 'port_share.revoke', actor, live, now)
        recordShareEnd(trx, live.id)
      }
      await insertShare(trx, created.row)
      record(trx, 'port_share.create', actor, created.row, now)
      const share = presentShare(created.row, box, { base, secret: created.secret })
      const replaced = live && { replaced: { id: live.id, access: live.access } }
      return { isNew: true, response: { share, ...replaced } }
    })

  async function applyRewriteHost(
    trx: Trx,
    actor: Actor,
    row: PortShareRow,
    rewriteHost: boolean | undefined,
  ): Promise<PortShareRow> {
    if (rewriteHost === undefined || rewriteHost === (row.rewrites_host === 1)) return row
    record(trx, 'port_share.update', actor, row, clock.now(), { rewriteHost })
    return updateShare(trx, row.id, { rewrites_host: rewriteHost ? 1 : 0 })
  }

  const revoke = (actor: Actor, id: string) =>
    transaction(db, async (trx) => {
      const found = isId('portShare', id) ? await findShare(trx, id) : undefined
      if (!found || !isVisible(actor, found)) throw createNoSuchShareError()
      // A box is locked before its shares.
      await lockBox(trx, found.box_id)
      const now = clock.now()
      const wasLive = isLive(found, now)
      const ended = await endShare(trx, id, now)
      if (!ended || !wasLive) return
      record(trx, 'port_share.revoke', actor, ended, now)
      recordShareEnd(trx, id)
    })

  const describe: PortShareService['describe'] = (actor, box) =>
    transaction(db, async (trx) => {
      const facts = await loadFacts(trx, actor.workspaceId, box)
      const links = await listLinkIds(trx, actor.workspaceId, clock.now())
      const modes: Partial<Record<(typeof PORT_AUDIENCES)[number], PortShareMode>> = {}
      for (const access of PORT_AUDIENCES) {
        const refusal =
          getAccessRefusal(access, actor, facts) ??
          getLimitRefusal(access, links.length) ??
          (await catchRefusal(admit(trx, actor, { action: 'share', access })))
        modes[access] = refusal
          ? { allowed: false, error: refusal.code, message: refusal.message }
          : { allowed: true }
      }
      const { shares, shareLinks } = switches
      return {
        enabled: shares,
        linksEnabled: shares && shareLinks,
        modes: modes as PortShareList['modes'],
      }
    })

  async function* listPages(scope: Parameters<typeof listLiveShares>[1]): AsyncGenerator<PortShare[]> {
    const now = clock.now()
    // The position is the end of the previous page, in the order of the query.
    const pages = readPages(({ before: after, limit }) =>
      listLiveShares(db, scope, now, { after, limit, order: 'oldest' }),
    )
    for await (const rows of pages) yield rows.map((row) => presentShare(row, row, { base }))
  }

  return {
    create,
    describe,
    listOfBox: (boxId) => listPages({ boxId }),
    listAll: (actor) => listPages({ visibility: getVisibility(actor) }),
    async listPage(actor, { limit = LIMITS.portSharePage.max, before }) {
      const after = before === undefined ? undefined : parseCursor(before, (id) => isId('portShare', id))
      const scope = { visibility: getVisibility(actor) }
      const page = { after, limit: limit + 1, order: 'newest' } as const
      const rows = await listLiveShares(db, scope, clock.now(), page)
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      return {
        shares: shown.map((row) => presentShare(row, row, { base })),
        nextBefore: rows.length > limit && last ? encodeCursor({ at: last.created_at, id: last.id }) : null,
      }
    },
    revoke,
    async prune(signal) {
      const now = clock.now()
      await deleteInBatches(db, (trx) => endExpiredShares(trx, now, PRUNE_BATCH_SIZE), signal)
      const before = now - RETENTION_MS
      return deleteInBatches(db, (trx) => deleteSharesEndedBefore(trx, before, PRUNE_BATCH_SIZE), signal)
    },
  }
}

function createRow(
  actor: Actor,
  { id: boxId, workspace_id: workspaceId, hostname }: BoxRow,
  { port, access, expiresIn, rewriteHost = false }: CreatePortShareRequest & Pick<PortShareRow, 'access'>,
  now: number,
): { row: PortShareRow; secret: string | undefined } {
  const secret = access === 'anyone' ? newLinkSecret() : undefined
  const row: PortShareRow = {
    id: newId('portShare'),
    workspace_id: workspaceId,
    box_id: boxId,
    port,
    slug: newSlug(hostname, port),
    access,
    secret_hash: secret === undefined ? null : hashSecret(secret),
    rewrites_host: rewriteHost ? 1 : 0,
    created_by: formatActor(actor),
    created_at: now,
    expires_at: isOpenLink(access) ? now + (expiresIn ?? LIMITS.shareLinkSeconds.default) * 1000 : null,
    ended_at: null,
    open_count: 0,
    last_opened_at: null,
  }
  return { row, secret }
}

function record(
  trx: Trx,
  kind: 'port_share.create' | 'port_share.update' | 'port_share.revoke',
  actor: Actor,
  { id, box_id: boxId, port, access }: PortShareRow,
  at: number,
  detail: { rewriteHost?: boolean } = {},
): void {
  recordAuditEvent(trx, { kind, actor, boxId, detail: { shareId: id, port, access, ...detail }, at })
}

const isVisible = (
  actor: Actor,
  share: Pick<PortShareRow, 'workspace_id' | 'box_id'> & Pick<BoxRow, 'owner_user_id'>,
): boolean =>
  canSee(actor, {
    workspaceId: share.workspace_id,
    boxId: share.box_id,
    ownerUserId: share.owner_user_id,
  })

function assertAllowed(refusal: ApiError | null): void {
  if (refusal !== null) throw refusal
}

async function catchRefusal(admission: Promise<unknown>): Promise<ApiError | null> {
  try {
    await admission
    return null
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}
