// Links that download a file of a box once, so that a browser streams it to disk. Only the hashes of tokens are stored.
import { randomBytes } from 'node:crypto'
import type { DownloadLink } from '../../shared/api/download-links.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { rejectLimited } from '../base/rate-limiter.ts'
import { createTokenBuckets } from '../base/token-buckets.ts'
import { deleteInBatches } from '../db/delete-in-batches.ts'
import type { Db } from '../db/open.ts'
import type { Actor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { hashSecret } from '../http/hash-secret.ts'
import { deleteLinksExpiredBefore, findLink, insertLink, takeLink } from './store.ts'

/** New links of a user at once, and per second. Each link is a write. */
const NEW_LINKS = { capacity: 30, perSecond: 1 }
const PRUNE_BATCH_SIZE = 500

export type LinkTarget = { boxId: string; path: string }

export type DownloadLinks = {
  /** @throws ApiError not_found, rate_limited */
  create(actor: Actor, boxId: string, path: string): Promise<DownloadLink>
  /**
   * Returns what a link downloads. The link is not valid afterwards.
   * @throws ApiError not_found for a link that is used, expired, unknown, or of another credential
   */
  use(actor: Actor, token: string): Promise<LinkTarget>
  /** The same, and the link stays valid. */
  peek(actor: Actor, token: string): Promise<LinkTarget>
}

export type DownloadLinkService = DownloadLinks & {
  /** @param signal aborts between two transactions */
  prune(signal: AbortSignal): Promise<number>
}

export function createDownloadLinks({
  db,
  clock,
  boxes,
}: {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'resolve'>
}): DownloadLinkService {
  const newLinks = createTokenBuckets(clock, NEW_LINKS)

  const read = async (find: typeof findLink, { credential }: Actor, token: string): Promise<LinkTarget> => {
    const row = await find(db, { hash: hashSecret(token), credentialId: credential.id, now: clock.now() })
    if (row === undefined)
      throw new ApiError(
        'not_found',
        'This download link was used, has expired, or belongs to another sign-in. Create another one.',
      )
    return { boxId: row.box_id, path: row.path }
  }

  return {
    async create(actor, boxId, path) {
      const { id } = await boxes.resolve(actor, boxId)
      const waitMs = newLinks.take(actor.userId ?? actor.credential.id)
      if (waitMs > 0) rejectLimited(waitMs, 'Too many download links were created.')
      const token = randomBytes(32).toString('base64url')
      const expiresAt = clock.now() + LIMITS.downloadLinkSeconds * 1000
      await insertLink(db, {
        hash: hashSecret(token),
        workspace_id: actor.workspaceId,
        box_id: id,
        credential_id: actor.credential.id,
        path,
        expires_at: expiresAt,
      })
      return { url: `/api/v1/downloads/${token}`, expiresAt: toTimestamp(expiresAt) }
    },
    use: (actor, token) => read(takeLink, actor, token),
    peek: (actor, token) => read(findLink, actor, token),
    prune: (signal) =>
      deleteInBatches(db, (trx) => deleteLinksExpiredBefore(trx, clock.now(), PRUNE_BATCH_SIZE), signal),
  }
}
