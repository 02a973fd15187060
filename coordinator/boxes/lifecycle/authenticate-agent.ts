// Authenticates the agents that connect, with the token of their box.

import { timingSafeEqual } from 'node:crypto'
import type { Db } from '../../db/open.ts'
import { prepareTokenQuery } from '../store/boxes.ts'

/**
 * The returned function resolves to true when the SHA-256 (hex) of the box's current token is `tokenHash`.
 * A box has a token from its first start until it is deleted. Each start of its machine replaces the token.
 */
export function createAgentAuthenticator(db: Db): (boxId: string, tokenHash: string) => Promise<boolean> {
  const findTokenHash = prepareTokenQuery(db)
  return async (boxId, tokenHash) => {
    const [row] = await findTokenHash(boxId)
    if (!row?.agent_token_hash) return false
    const [stored, presented] = [Buffer.from(row.agent_token_hash), Buffer.from(tokenHash)]
    return stored.length === presented.length && timingSafeEqual(stored, presented)
  }
}
