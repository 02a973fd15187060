// Idempotency-Key (spec §4.1.6): runs a request once and replays its response when the request is sent again.
import { createHash } from 'node:crypto'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Replica } from '../replicas/replica.ts'
import type { Actor } from './actor.ts'
import { claimKey, type IdempotencyKeyId, releaseKey, saveResponse } from './idempotency-store.ts'

const KEY = new RegExp(`^[\\x21-\\x7e]{1,${LIMITS.idempotencyKeyLength}}$`)
const RETRY_AFTER_SECONDS = '1'

/** @throws ApiError invalid_idempotency_key */
export function assertIdempotencyKey(header: string | string[]): string {
  if (typeof header !== 'string' || !KEY.test(header)) throw new ApiError('invalid_idempotency_key')
  return header
}

/** JSON with the fields of every object sorted by name. */
function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

/** SHA-256 (hex) of everything that must be equal for two requests to be the same request. */
function computeFingerprint(actor: Actor, params: unknown, body: unknown): string {
  const member = actor.userId ?? actor.credential.id
  const scope = actor.boxIds === null ? null : [...actor.boxIds].sort()
  return createHash('sha256')
    .update(toCanonicalJson({ body: body ?? null, params: params ?? null, member, role: actor.role, scope }))
    .digest('hex')
}

export type IdempotentRequest = {
  header: string | string[]
  /** Method and path pattern, such as `POST /boxes`. A key is scoped to its route and workspace. */
  route: string
  actor: Actor
  params: unknown
  /** The body as the client sent it. */
  body: unknown
  /** Status of the success response. */
  status: number
}

export type IdempotentResponse = { status: number; body: string; replayed: boolean }

export type RunIdempotent = (
  request: IdempotentRequest,
  run: (trx: Trx) => Promise<unknown>,
) => Promise<IdempotentResponse>

export type IdempotentRunnerOptions = { db: Db; clock: Clock; replica: Pick<Replica, 'id'> }

/**
 * The returned function calls `run` in a transaction that also stores the response, unless the key already has a
 * response. Throws invalid_idempotency_key, idempotency_key_reused or idempotency_in_progress. When `run` throws, the
 * key is released.
 */
export function createIdempotentRunner({ db, clock, replica }: IdempotentRunnerOptions): RunIdempotent {
  /** Fingerprints of the requests that run in this process. Rows cannot be read while SQLite is in a transaction. */
  const running = new Map<string, string>()

  async function runOnce(
    id: IdempotencyKeyId,
    fingerprint: string,
    status: number,
    run: (trx: Trx) => Promise<unknown>,
  ): Promise<IdempotentResponse> {
    const now = clock.now()
    const row = { ...id, fingerprint, created_at: now, lease_owner: replica.id }
    const existing = await claimKey(db, row, now - LIMITS.idempotencyWindowMs)
    if (existing) {
      assertSameRequest(existing.fingerprint, fingerprint)
      if (existing.status !== null)
        return { status: existing.status, body: existing.body ?? '', replayed: true }
      if (existing.isRunning) throw createInProgressError()
      // The request that wrote the row is not running: its process was killed, or the database did not answer when the request ended.
    }
    try {
      return await transaction(db, async (trx) => {
        const response = { status, body: JSON.stringify(await run(trx)) }
        // The lease of this coordinator was lost meanwhile: another one runs the request, and this one must change nothing.
        if (!(await saveResponse(trx, id, response, replica.id))) throw createInProgressError()
        return { ...response, replayed: false }
      })
    } catch (error) {
      // The next request with the key runs, also when this fails.
      await releaseKey(db, id, replica.id).catch(() => undefined)
      throw error
    }
  }

  return async ({ header, route, actor, params, body, status }, run) => {
    const key = assertIdempotencyKey(header)
    const id: IdempotencyKeyId = { workspace_id: actor.workspaceId, route, key }
    const fingerprint = computeFingerprint(actor, params, body)
    const mapKey = JSON.stringify(id)
    const runningFingerprint = running.get(mapKey)
    if (runningFingerprint !== undefined) {
      assertSameRequest(runningFingerprint, fingerprint)
      throw createInProgressError()
    }
    running.set(mapKey, fingerprint)
    try {
      return await runOnce(id, fingerprint, status, run)
    } finally {
      running.delete(mapKey)
    }
  }
}

function assertSameRequest(firstFingerprint: string, fingerprint: string): void {
  if (firstFingerprint !== fingerprint) throw new ApiError('idempotency_key_reused')
}

const createInProgressError = () =>
  new ApiError('idempotency_in_progress', undefined, { headers: { 'retry-after': RETRY_AFTER_SECONDS } })
