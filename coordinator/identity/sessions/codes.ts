// Issues and redeems the codes that are sent by email. The limits are computed from the stored codes, so they also hold
// after a restart.
import { randomInt } from 'node:crypto'
import pLimit from 'p-limit'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import type { Db } from '../../db/open.ts'
import type { SignInCodeRow } from '../../db/schema.ts'
import { type OnCommit, type Trx, transaction } from '../../db/transaction.ts'
import { findLastCodeOfKey, insertCode, listCodes, lockCode, updateCode } from './code-store.ts'
import { CODE } from './lifetime.ts'
import { hashCode, newCode } from './sign-in-code.ts'

/** What a code confirms: a sign-in, the email address of a new agent account, or a new email address of a user. */
export type CodePurpose = { signIn: true } | { keyId: string } | { userId: string }
type PurposeKind = 'signIn' | 'key' | 'user'

export type NewCode = { id: string; code: string; expiresAt: number }

/** `rejected`: the code is wrong, used, expired or unknown. null: there is no code with this id. */
export type Redemption = { redeemed: SignInCodeRow } | { rejected: SignInCodeRow | null }

export type Codes = {
  /**
   * Runs `fn` in a transaction, one call at a time: calls at the same time would count the attempts and codes of an email
   * address without those of each other.
   */
  exclusively<T>(fn: (trx: Trx, onCommit: OnCommit) => Promise<T>): Promise<T>
  /** Call it in exclusively(). Throws rate_limited with Retry-After. */
  issue(trx: Trx, email: string, purpose: CodePurpose): Promise<NewCode>
  /** Call it in exclusively(), and commit also when the code is rejected. Throws rate_limited with Retry-After. */
  redeem(trx: Trx, attempt: { id: string; code: string }, kind: PurposeKind): Promise<Redemption>
  findEmailOfKey(db: Db | Trx, keyId: string): Promise<string | undefined>
}

const getKind = ({ key_id, user_id }: SignInCodeRow): PurposeKind =>
  key_id !== null ? 'key' : user_id !== null ? 'user' : 'signIn'

export function createCodes({ db, clock }: { db: Db; clock: Clock }): Codes {
  const oneAtATime = pLimit(1)

  async function assertBelowLimits(trx: Trx, email: string, { isNew }: { isNew: boolean }): Promise<void> {
    const now = clock.now()
    const codes = await listCodes(trx, email, now - CODE.windowMs)
    const failures = codes.reduce((sum, { attempts }) => sum + attempts, 0)
    const tooManyCodes = isNew && codes.length >= CODE.codesPerEmail
    if (!tooManyCodes && failures < CODE.attemptsPerEmail) return
    const oldest = tooManyCodes ? codes[0] : codes.find(({ attempts }) => attempts > 0)
    const problem = tooManyCodes ? 'Too many codes were requested' : 'Too many wrong codes were entered'
    rejectLimited((oldest?.created_at ?? now) + CODE.windowMs - now, `${problem} for this email address.`)
  }

  return {
    exclusively: (fn) => oneAtATime(() => transaction(db, fn)),

    async issue(trx, email, purpose) {
      await assertBelowLimits(trx, email, { isNew: true })
      const id = newId('signInCode')
      const code = newCode(randomInt)
      const now = clock.now()
      const expiresAt = now + CODE.validMs
      await insertCode(trx, {
        id,
        email,
        key_id: 'keyId' in purpose ? purpose.keyId : null,
        user_id: 'userId' in purpose ? purpose.userId : null,
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
      await assertBelowLimits(trx, row.email, { isNew: false })
      const now = clock.now()
      if (row.used_at !== null || row.expires_at <= now || row.attempts >= CODE.attempts)
        return { rejected: row }
      // SHA-256 hides how much of the code was right, so the comparison need not take constant time.
      if (hashCode(id, code) !== row.code_hash) {
        await updateCode(trx, id, { attempts: row.attempts + 1 })
        return { rejected: row }
      }
      await updateCode(trx, id, { used_at: now })
      return { redeemed: row }
    },

    findEmailOfKey: async (database, keyId) => (await findLastCodeOfKey(database, keyId))?.email,
  }
}

export const createInvalidCodeError = () => new ApiError('invalid_code')
