// The sessions of people at shares for members. A session acts with the credential that has created its code, so it ends with
// the credential and has the rights of it at each request. Only hashes of codes and sessions are stored.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import type { ShareViewerRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import { rankLevel } from '../../http/access.ts'
import type { Actor } from '../../http/actor.ts'
import type { CredentialLookup } from '../../http/auth.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { canSee } from '../../http/visibility.ts'
import type { CreatedCode, ServedShare, ShareViewers } from '../types.ts'
import {
  deleteExpired,
  deleteOfShare,
  deleteOldest,
  findCode,
  insertCode,
  prepareViewerQuery,
  replaceCode,
  type ViewerWithOwner,
} from './store.ts'

const MINUTE_MS = 60_000

export const VIEWERS = {
  /** A person may have to copy the URL to a browser. */
  openCodeMs: 10 * MINUTE_MS,
  /** The browser follows a redirect with the code. */
  codeMs: MINUTE_MS,
  sessionMs: 7 * 24 * 60 * MINUTE_MS,
  /** Codes, and sessions, of a user at a share. Above it, the oldest ones are deleted. */
  perUser: 20,
  /** New codes of a user at once, and per second. Each code is a write. */
  codes: { capacity: 30, perSecond: 0.5 },
} as const

const PRUNE_BATCH_SIZE = 500

type FindActor = (credential: { type: 'key' | 'session'; id: string }) => Promise<CredentialLookup>

export type ShareViewersOptions = {
  db: Db
  clock: Clock
  /** Finds the actor of a credential by its id, without recording a use. Runs for every request of a viewer. */
  findActor: FindActor
}

export type ShareViewerService = ShareViewers & {
  /** Deletes the codes and sessions of a share. */
  deleteOfShare(shareId: string): Promise<void>
  /** @param signal aborts between two transactions */
  prune(signal: AbortSignal): Promise<number>
}

const newToken = (): string => randomBytes(32).toString('base64url')

/** A code is not valid without the state of its sign-in. @param state null: a code of createOpenCode() */
const hashCode = (code: string, state: string | null): string => hashSecret(`${state ?? 'open'}.${code}`)

export function createShareViewers({ db, clock, findActor }: ShareViewersOptions): ShareViewerService {
  const queryViewer = prepareViewerQuery(db)
  const newCodes = createTokenBuckets(clock, VIEWERS.codes)

  async function addCode(
    actor: Actor,
    share: Pick<ServedShare, 'id' | 'boxId'>,
    { state, lifetimeMs }: { state: string | null; lifetimeMs: number },
  ): Promise<CreatedCode> {
    const { credential, workspaceId, userId } = actor
    if (credential.type === 'ticket') throw new Error('tickets do not view shares')
    const waitMs = newCodes.take(userId ?? credential.id)
    if (waitMs > 0) rejectLimited(waitMs, 'Too many links were opened.')
    const code = newToken()
    const now = clock.now()
    const row: ShareViewerRow = {
      id: newId('shareViewer'),
      workspace_id: workspaceId,
      box_id: share.boxId,
      share_id: share.id,
      credential_type: credential.type,
      credential_id: credential.id,
      user_id: userId,
      code_hash: hashCode(code, state),
      token_hash: null,
      created_at: now,
      expires_at: now + lifetimeMs,
    }
    await transaction(db, async (trx) => {
      await insertCode(trx, row)
      await deleteOldest(trx, row, { of: 'codes', kept: VIEWERS.perUser })
    })
    return { code, expiresAt: row.expires_at }
  }

  /** The actor of a code or session that is valid for the share. */
  async function findValidActor(
    share: ServedShare,
    row: ViewerWithOwner | undefined,
  ): Promise<Actor | undefined> {
    if (row === undefined || row.share_id !== share.id || row.expires_at <= clock.now()) return undefined
    const found = await findActor({ type: row.credential_type, id: row.credential_id })
    if (!('actor' in found)) return undefined
    const { actor } = found
    const mayRead = rankLevel(actor.access, 'boxes') >= rankLevel({ boxes: 'read' }, 'boxes')
    const box = { workspaceId: row.workspace_id, boxId: row.box_id, ownerUserId: row.owner_user_id }
    return mayRead && canSee(actor, box) ? limitActor(actor, row.expires_at) : undefined
  }

  const findOpenCode = async (share: ServedShare, openCode: string) =>
    findValidActor(share, await findCode(db, hashCode(openCode, null)))

  async function redeemOpenCode(share: ServedShare, openCode: string, state: string) {
    if ((await findOpenCode(share, openCode)) === undefined) return undefined
    const code = newToken()
    const now = clock.now()
    const next = {
      code_hash: hashCode(code, state),
      created_at: now,
      expires_at: now + VIEWERS.codeMs,
    }
    const row = await transaction(db, (trx) => replaceCode(trx, hashCode(openCode, null), next))
    return row && code
  }

  async function exchange(share: ServedShare, code: string, state: string) {
    const codeHash = hashCode(code, state)
    const actor = await findValidActor(share, await findCode(db, codeHash))
    if (actor === undefined) return undefined
    const token = newToken()
    const now = clock.now()
    const session = {
      code_hash: null,
      token_hash: hashSecret(token),
      created_at: now,
      expires_at: now + VIEWERS.sessionMs,
    }
    const isStarted = await transaction(db, async (trx) => {
      const row = await replaceCode(trx, codeHash, session)
      if (row === undefined) return false
      await deleteOldest(trx, row, { of: 'sessions', kept: VIEWERS.perUser })
      const detail = { shareId: share.id, port: share.port, access: share.access }
      recordAuditEvent(trx, { kind: 'port_share.open', actor, boxId: share.boxId, detail, at: now })
      return true
    })
    return isStarted ? { token, maxAgeSeconds: VIEWERS.sessionMs / 1000 } : undefined
  }

  return {
    createCode: (actor, share, state) => addCode(actor, share, { state, lifetimeMs: VIEWERS.codeMs }),
    createOpenCode: (actor, share) => addCode(actor, share, { state: null, lifetimeMs: VIEWERS.openCodeMs }),
    isOpenCode: async (share, openCode) => (await findOpenCode(share, openCode)) !== undefined,
    redeemOpenCode,
    exchange,
    async find(share, token) {
      const [row] = await queryViewer(hashSecret(token))
      return findValidActor(share, row)
    },
    deleteOfShare: async (shareId) => {
      await transaction(db, (trx) => deleteOfShare(trx, shareId))
    },
    prune(signal) {
      const now = clock.now()
      return deleteInBatches(db, (trx) => deleteExpired(trx, now, PRUNE_BATCH_SIZE), signal)
    },
  }
}

/** The access of a viewer ends at the latest with the viewer session. */
const limitActor = (actor: Actor, expiresAt: number): Actor => ({
  ...actor,
  credential: {
    ...actor.credential,
    expiresAt: Math.min(actor.credential.expiresAt ?? expiresAt, expiresAt),
  },
})
