// Idempotency-Key (spec §4.1.6): a request sent again is answered again, and done once.
import { createHash } from 'node:crypto'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from './actor.ts'
import { claimKey, type IdempotencyPlace, keepAnswer, releaseKey } from './idempotency-store.ts'

const KEY = new RegExp(`^[\\x21-\\x7e]{1,${LIMITS.idempotencyKeyLength}}$`)
const RETRY_AFTER_SECONDS = '1'

/** JSON with the fields of every object in one order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

/** SHA-256, hex, of what makes two requests the same one. */
function fingerprint(actor: Actor, params: unknown, body: unknown): string {
  const member = actor.userId ?? actor.keyId
  const scope = actor.boxIds === null ? null : [...actor.boxIds].sort()
  return createHash('sha256')
    .update(canonical({ body: body ?? null, params: params ?? null, member, role: actor.role, scope }))
    .digest('hex')
}

export type IdempotentRequest = {
  header: string | string[]
  /** Method and pattern, e.g. `POST /boxes`: what a key is scoped to, next to its workspace. */
  route: string
  actor: Actor
  params: unknown
  /** As it was sent. */
  body: unknown
  /** Of the answer. */
  status: number
}

export type IdempotentAnswer = { status: number; body: string; replayed: boolean }

/**
 * Runs `run` in a transaction that commits together with its answer, unless the key has an answer already.
 * Throws invalid_idempotency_key, idempotency_key_reused or idempotency_in_progress; what `run` throws frees the key.
 */
export async function idempotently(
  { db, clock }: { db: Db; clock: Clock },
  request: IdempotentRequest,
  run: (trx: Trx) => Promise<unknown>,
): Promise<IdempotentAnswer> {
  const { header, route, actor, params, body, status } = request
  if (typeof header !== 'string' || !KEY.test(header)) throw new ApiError('invalid_idempotency_key')
  const place: IdempotencyPlace = { workspace_id: actor.workspaceId, route, key: header }
  const mine = { ...place, fingerprint: fingerprint(actor, params, body), created_at: clock.now() }
  const earlier = await claimKey(db, mine, mine.created_at - LIMITS.idempotencyWindowMs)
  if (earlier) {
    if (earlier.fingerprint !== mine.fingerprint) throw new ApiError('idempotency_key_reused')
    if (earlier.status === null)
      throw new ApiError('idempotency_in_progress', undefined, {
        headers: { 'retry-after': RETRY_AFTER_SECONDS },
      })
    return { status: earlier.status, body: earlier.body ?? '', replayed: true }
  }
  try {
    return await transaction(db, async (trx) => {
      const answer = { status, body: JSON.stringify(await run(trx)) }
      await keepAnswer(trx, place, answer)
      return { ...answer, replayed: false }
    })
  } catch (error) {
    await releaseKey(db, place)
    throw error
  }
}
