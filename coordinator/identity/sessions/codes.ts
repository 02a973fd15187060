// Issues and redeems the codes that are sent by email. Neither the requests nor the wrong codes of others keep a person from
// signing in: codes are counted by email address and client together, and wrong codes by code.
import { randomInt } from 'node:crypto'
import pLimit from 'p-limit'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import type { Db } from '../../db/open.ts'
import type { SignInCodeRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { lockValue } from '../../deployment/values.ts'
import { toSubject } from '../../http/client-address.ts'
import { findCode, findLastCodeOfKey, insertCode, listCodes, lockCode, updateCode } from './code-store.ts'
import { CODE } from './lifetime.ts'
import type { ClientLimiter } from './rate-limits.ts'
import { hashCode, newCode } from './sign-in-code.ts'
import { listSessionAddresses } from './store.ts'

const TOO_MANY_CODES = 'Too many codes were requested for this email address.'

/** What a code confirms: a sign-in, the email address of a new agent account, or a new email address of a user. */
export type CodePurpose = { signIn: true } | { keyId: string } | { userId: string }
type PurposeKind = 'signIn' | 'key' | 'user'

export type NewCode = { id: string; code: string; expiresAt: number }

/** `rejected`: the code is wrong, used, expired or unknown. null: there is no code with this id. */
export type RejectedCode = { rejected: SignInCodeRow | null }
export type Redemption = { redeemed: SignInCodeRow } | RejectedCode

export type Codes = {
  /**
   * Runs `fn` in a transaction, one call at a time, also of other coordinators: calls at the same time would count the attempts and codes of an email
   * address without those of each other.
   */
  exclusively<T>(fn: (trx: Trx) => Promise<T>): Promise<T>
  /**
   * Runs `fn` like exclusively(), but not when the code cannot be redeemed: clients that send such codes do not delay others.
   */
  exclusivelyFor<T>(id: string, kind: PurposeKind, fn: (trx: Trx) => Promise<T>): Promise<T | RejectedCode>
  /**
   * Call it in exclusively(). Throws rate_limited with Retry-After.
   * @param client its address as toSubject(), or its user
   */
  issue(trx: Trx, email: string, purpose: CodePurpose, client: string): Promise<NewCode>
  /** Whether a person with this email address has a session from the client. */
  isKnownClient(database: Db | Trx, email: string, client: string): Promise<boolean>
  /** Call it in exclusivelyFor(), and commit also when the code is rejected. */
  redeem(trx: Trx, attempt: { id: string; code: string }, kind: PurposeKind): Promise<Redemption>
  findEmailOfKey(db: Db | Trx, keyId: string): Promise<string | undefined>
}

const getKind = ({ key_id, user_id }: Pick<SignInCodeRow, 'key_id' | 'user_id'>): PurposeKind =>
  key_id !== null ? 'key' : user_id !== null ? 'user' : 'signIn'

export type CodesOptions = {
  db: Db
  clock: Clock
  limiter: ClientLimiter
  /** Whether other coordinators use the database. */
  isShared: boolean
}

export function createCodes({ db, clock, limiter, isShared }: CodesOptions): Codes {
  const oneAtATime = pLimit(1)
  const exclusively: Codes['exclusively'] = (fn) =>
    oneAtATime(() =>
      transaction(db, async (trx) => {
        if (isShared) await lockValue(trx, 'sign_in_codes')
        return fn(trx)
      }),
    )

  const isClosed = ({ used_at: usedAt, expires_at: expiresAt, attempts }: SignInCodeRow): boolean =>
    usedAt !== null || expiresAt <= clock.now() || attempts >= CODE.attempts

  async function isKnownClient(database: Db | Trx, email: string, client: string): Promise<boolean> {
    const addresses = await listSessionAddresses(database, email)
    return addresses.some((address) => toSubject(address) === client)
  }

  /** A client with a session of the email address gets codes, also while other clients request many. */
  async function assertBelowLimits(
    trx: Trx,
    email: string,
    kind: PurposeKind,
    client: string,
  ): Promise<void> {
    const waitMs = limiter.take('requestCodeForEmail', `${client} ${kind} ${email}`)
    if (waitMs > 0) rejectLimited(waitMs, TOO_MANY_CODES)
    const now = clock.now()
    const codes = await listCodes(trx, email, now - CODE.windowMs)
    const [oldest, ...others] = codes.filter((row) => getKind(row) === kind)
    if (oldest === undefined || others.length + 1 < CODE.codesPerEmail) return
    if (!(await isKnownClient(trx, email, client)))
      rejectLimited(oldest.created_at + CODE.windowMs - now, TOO_MANY_CODES)
  }

  return {
    exclusively,
    isKnownClient,

    async exclusivelyFor(id, kind, fn) {
      const row = isId('signInCode', id) ? await findCode(db, id) : undefined
      if (row === undefined || getKind(row) !== kind) return { rejected: null }
      return isClosed(row) ? { rejected: row } : exclusively(fn)
    },

    async issue(trx, email, purpose, client) {
      const owner = {
        key_id: 'keyId' in purpose ? purpose.keyId : null,
        user_id: 'userId' in purpose ? purpose.userId : null,
      }
      await assertBelowLimits(trx, email, getKind(owner), client)
      const id = newId('signInCode')
      const code = newCode(randomInt)
      const now = clock.now()
      const expiresAt = now + CODE.validMs
      await insertCode(trx, {
        id,
        email,
        ...owner,
        code_hash: hashCode(id, code),
        attempts: 0,
        created_at: now,
        expires_at: expiresAt,
        used_at: null,
      })
      return { id, code, expiresAt }
    },

    async redeem(trx, { id, code }, kind) {
      const row = isId('signInCode', id) ? await lockCode(trx, id) : undefined
      if (row === undefined || getKind(row) !== kind) return { rejected: null }
      if (isClosed(row)) return { rejected: row }
      // SHA-256 hides how much of the code was right, so the comparison need not take constant time.
      if (hashCode(id, code) !== row.code_hash) {
        await updateCode(trx, id, { attempts: row.attempts + 1 })
        return { rejected: row }
      }
      await updateCode(trx, id, { used_at: clock.now() })
      return { redeemed: row }
    },

    findEmailOfKey: async (database, keyId) => (await findLastCodeOfKey(database, keyId))?.email,
  }
}

export const createInvalidCodeError = () => new ApiError('invalid_code')
