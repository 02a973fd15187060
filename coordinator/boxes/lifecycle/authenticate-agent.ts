// Authenticates the agents that connect, with the token of their box.

import { timingSafeEqual } from 'node:crypto'
import { createBatchLoader } from '../../base/batch-loader.ts'
import type { Db } from '../../db/open.ts'
import { listTokenHashes, prepareTokenQuery } from '../store/boxes.ts'

/** Queries for agents that connect, also for those with wrong tokens. */
export const AGENT_QUERIES = { burst: 200, perSecond: 100 } as const

/**
 * The returned function resolves to the id of the box's workspace when the SHA-256 (hex) of the box's current token is
 * `tokenHash`, else to null.
 * A box has a token from its first start until it is deleted. Each start of its machine replaces the token.
 */
export function createAgentAuthenticator(
  db: Db,
): (boxId: string, tokenHash: string) => Promise<string | null> {
  const findTokenHash = prepareTokenQuery(db)
  const loadRow = createBatchLoader({
    ...AGENT_QUERIES,
    async load(boxIds) {
      const [boxId = '', ...others] = boxIds
      const rows = others.length === 0 ? await findTokenHash(boxId) : await listTokenHashes(db, boxIds)
      return new Map(rows.map((row) => [row.id, row]))
    },
  })
  return async (boxId, tokenHash) => {
    const row = await loadRow(boxId)
    if (!row?.agent_token_hash) return null
    const [stored, presented] = [Buffer.from(row.agent_token_hash), Buffer.from(tokenHash)]
    const isEqual = stored.length === presented.length && timingSafeEqual(stored, presented)
    return isEqual ? row.workspace_id : null
  }
}
