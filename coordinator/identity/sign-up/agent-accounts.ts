// Agent accounts (spec §5.2, §5.3): an agent creates a workspace with a key, and confirms the emailed code.

import type {
  AgentAccount,
  AgentAccountCode,
  CreateAgentAccountRequest,
} from '../../../shared/api/agent-accounts.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newId } from '../../../shared/ids.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import { deleteInBatches } from '../../db/delete-in-batches.ts'
import type { Db } from '../../db/open.ts'
import type { Trx } from '../../db/transaction.ts'
import { toSubject } from '../../http/client-address.ts'
import { hashSecret } from '../../http/hash-secret.ts'
import { recordDueTime } from '../../jobs/due-times.ts'
import { presentKey } from '../keys/key-rules.ts'
import { createKeyRow, getKeyEnding, recordKeyCreation } from '../keys/keys.ts'
import type { Mailer } from '../mail/mailer.ts'
import { type Codes, createInvalidCodeError, type NewCode } from '../sessions/codes.ts'
import { CODE } from '../sessions/lifetime.ts'
import { createCodeMail } from '../sessions/mails.ts'
import type { ClientLimiter } from '../sessions/rate-limits.ts'
import { deleteKeys, insertKey, lockUnverifiedKey, lockUnverifiedKeys, updateKey } from '../store/keys.ts'
import { updateUser } from '../store/users.ts'
import { updateWorkspace } from '../store/workspaces.ts'
import { createAccount, createDefaultName } from '../workspaces/create-account.ts'
import { schedulePurge } from '../workspaces/schedules.ts'

export type AgentAccounts = {
  /** @param address of the client. Throws not_allowed while sign-up is closed. */
  create(input: CreateAgentAccountRequest, address: string | null): Promise<AgentAccount>
  /** Sends another code. The result is the same for an unknown and for a verified key. */
  requestCode(keyId: string, address: string | null): Promise<AgentAccountCode>
  /** Throws invalid_code. */
  verify(attempt: { id: string; code: string }, address: string | null): Promise<void>
  /** Ends accounts that were not verified in a week, and schedules the deletion of their workspaces. */
  prune(signal: AbortSignal): Promise<void>
}

export type AgentAccountsOptions = {
  db: Db
  clock: Clock
  isSignupOpen: boolean
  sessions: { codes: Codes; limiter: ClientLimiter }
  mailer: Mailer
  background: BackgroundTasks
}

const DAY_MS = 24 * 60 * 60 * 1000
const UNVERIFIED_MS = 7 * DAY_MS
const BATCH_SIZE = 100

export function createAgentAccounts(options: AgentAccountsOptions): AgentAccounts {
  const { db, clock, isSignupOpen, sessions, mailer, background } = options
  const { codes, limiter } = sessions

  const sendCode = (email: string, { code }: NewCode): void =>
    background.run('send a verification code', () => mailer.send(createCodeMail('account', email, code)))

  const presentCode = ({ id, expiresAt }: Pick<NewCode, 'id' | 'expiresAt'>): AgentAccountCode => ({
    codeId: id,
    codeExpiresAt: toTimestamp(expiresAt),
  })

  return {
    async create({ email, name = createDefaultName(email) }, address) {
      if (!isSignupOpen)
        throw new ApiError(
          'not_allowed',
          'Sign-up is closed on this coordinator. Ask an owner of a workspace for an API key.',
        )
      const client = toSubject(address)
      limiter.count('createAccount', client)
      const secret = newApiKey()
      const now = clock.now()
      const { workspace, row, issued } = await codes.exclusively(async (trx) => {
        // The user gets the email address when it is confirmed: before, the person must not see the workspace at their sign-in.
        const { workspace, user } = await createAccount(trx, { email: null, name, now })
        const row = createKeyRow({
          workspaceId: workspace.id,
          userId: user.id,
          hash: hashSecret(secret),
          ending: getKeyEnding(secret),
          name,
          now,
          unverifiedSince: now,
        })
        await insertKey(trx, row)
        recordKeyCreation(trx, row)
        return { workspace, row, issued: await codes.issue(trx, email, { keyId: row.id }, client) }
      })
      sendCode(email, issued)
      return {
        key: presentKey(row),
        secret,
        workspace: { id: workspace.id, name: workspace.name },
        ...presentCode(issued),
      }
    },

    async requestCode(keyId, address) {
      const client = toSubject(address)
      limiter.count('requestCode', client)
      const result = await codes.exclusively(async (trx) => {
        const key = isId('apiKey', keyId) ? await lockUnverifiedKey(trx, keyId) : undefined
        const email = key && (await codes.findEmailOfKey(trx, key.id))
        return email === undefined
          ? null
          : { email, issued: await codes.issue(trx, email, { keyId }, client) }
      })
      if (result === null)
        return presentCode({ id: newId('signInCode'), expiresAt: clock.now() + CODE.validMs })
      sendCode(result.email, result.issued)
      return presentCode(result.issued)
    },

    async verify(attempt, address) {
      const outcome = await codes.exclusivelyFor(attempt.id, 'key', async (trx) => {
        const redemption = await codes.redeem(trx, attempt, 'key')
        if ('rejected' in redemption) return false
        const { email, key_id: keyId } = redemption.redeemed
        const key = keyId === null ? undefined : await lockUnverifiedKey(trx, keyId)
        if (key === undefined) return false
        const now = clock.now()
        await updateKey(trx, key.id, { unverified_since: null })
        // The owner gets the confirmed address.
        if (key.user_id !== null) await updateUser(trx, key.user_id, { email, joined_at: now })
        recordAuditEvent(trx, {
          kind: 'key.verify',
          actor: { system: true, workspaceId: key.workspace_id },
          boxId: null,
          detail: { keyId: key.id, userId: key.user_id },
          at: now,
        })
        return true
      })
      if (outcome === true) return
      limiter.count('wrongCode', toSubject(address))
      throw createInvalidCodeError()
    },

    async prune(signal) {
      const unverifiedBefore = clock.now() - UNVERIFIED_MS
      await deleteInBatches(
        db,
        async (trx) => {
          const now = clock.now()
          const keys = await lockUnverifiedKeys(trx, { unverifiedBefore, limit: BATCH_SIZE })
          for (const key of keys) await closeWorkspace(trx, key.workspace_id, now)
          if (keys.length > 0) recordDueTime(trx, now)
          return keys.length
        },
        signal,
      )
    },
  }
}

/** Ends the only credential of the workspace. The purge deletes what the modules store for it, such as its billing account. */
async function closeWorkspace(trx: Trx, workspaceId: string, now: number): Promise<void> {
  await deleteKeys(trx, workspaceId)
  await updateWorkspace(trx, workspaceId, { closing_at: now, purge_after: now })
  await schedulePurge(trx, workspaceId, now)
}
