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

export type Idempotently = (
  request: IdempotentRequest,
  run: (trx: Trx) => Promise<unknown>,
) => Promise<IdempotentAnswer>

/**
 * The returned function runs `run` in a transaction that commits together with its answer, unless the key has an
 * answer already. Throws invalid_idempotency_key, idempotency_key_reused or idempotency_in_progress; what `run`
 * throws frees the key.
 */
export function createIdempotency({ db, clock }: { db: Db; clock: Clock }): Idempotently {
  /** Fingerprints of what runs in this process: its rows cannot be looked at while SQLite is in its transaction. */
  const running = new Map<string, string>()

  async function runOnce(
    place: IdempotencyPlace,
    mine: string,
    status: number,
    run: (trx: Trx) => Promise<unknown>,
  ): Promise<IdempotentAnswer> {
    const now = clock.now()
    const row = { ...place, fingerprint: mine, created_at: now }
    const earlier = await claimKey(db, row, now - LIMITS.idempotencyWindowMs)
    if (earlier) {
      refuseUnlessSame(earlier.fingerprint, mine)
      if (earlier.status === null) throw inProgress()
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

  return async ({ header, route, actor, params, body, status }, run) => {
    if (typeof header !== 'string' || !KEY.test(header)) throw new ApiError('invalid_idempotency_key')
    const place: IdempotencyPlace = { workspace_id: actor.workspaceId, route, key: header }
    const mine = fingerprint(actor, params, body)
    const name = JSON.stringify(place)
    const other = running.get(name)
    if (other !== undefined) {
      refuseUnlessSame(other, mine)
      throw inProgress()
    }
    running.set(name, mine)
    try {
      return await runOnce(place, mine, status, run)
    } finally {
      running.delete(name)
    }
  }
}

function refuseUnlessSame(theirs: string, mine: string): void {
  if (theirs !== mine) throw new ApiError('idempotency_key_reused')
}

const inProgress = () =>
  new ApiError('idempotency_in_progress', undefined, { headers: { 'retry-after': RETRY_AFTER_SECONDS } })
