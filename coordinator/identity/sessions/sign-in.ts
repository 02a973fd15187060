// Sign-in by an emailed code, and of the owner on the coordinator's machine (spec §5).
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IssuedCode } from '../../../shared/api/sessions.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { BackgroundTasks } from '../../base/background-tasks.ts'
import { rejectLimited } from '../../base/rate-limiter.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { toSubject } from '../../http/client-address.ts'
import type { Mailer } from '../mail/mailer.ts'
import {
  findFirstOwnerMembership,
  findMembership,
  listMemberships,
  type Membership,
} from '../store/members.ts'
import { type Codes, createInvalidCodeError } from './codes.ts'
import { createCodeMail } from './mails.ts'
import type { OwnerSecret } from './owner-secret.ts'
import { type ClientLimiter, TOO_MANY_REQUESTS } from './rate-limits.ts'
import { isLinkSecret, type SignInLink, SignInLinks } from './sign-in-links.ts'
import type { Client, NewSession, SessionStarter } from './start-session.ts'

export type SignIn = {
  /**
   * The result is the same for an email address that no member has. Only above a limit it differs, for a client from whose
   * address the person has signed in.
   */
  requestCode(email: string, client: Client): Promise<IssuedCode>
  confirm(attempt: { id: string; code: string }, client: Client): Promise<NewSession>
  /** @param secret that of sign-in.key, or of a link */
  signInOwner(secret: string, client: Client): Promise<NewSession>
  /** A link that signs in the owner once, for those who can read sign-in.key. */
  createLink(ownerSecret: string, client: Client): Promise<SignInLink>
  /** The same for the startup banner. */
  createFirstLink(): Promise<SignInLink>
  /** Voids the links of earlier starts. */
  voidLinks(): Promise<void>
}

export type SignInOptions = {
  db: Db
  clock: Clock
  codes: Codes
  starter: SessionStarter
  limiter: ClientLimiter
  mailer: Mailer
  background: BackgroundTasks
  ownerSecret: OwnerSecret
  /** Creates a workspace for the owner of an email address that no member has; null: sign-up is closed. */
  createAccount: ((trx: Trx, email: string) => Promise<{ userId: string }>) | null
}

const API_KEY_PREFIX = 'dcp_'
/** Rejected sign-ins of an email address are recorded once in this time. */
const REJECTION_INTERVAL_MS = 60_000
const MAX_RECENT_REJECTIONS = 10_000

const compareSecrets = (a: string, b: string): boolean => {
  const [hashA, hashB] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return hashA !== undefined && hashB !== undefined && timingSafeEqual(hashA, hashB)
}

/** Sorts by last use, then by the time of joining, newest first. */
const compareUse = (a: Membership, b: Membership): number =>
  (b.last_active_at ?? 0) - (a.last_active_at ?? 0) ||
  (b.joined_at ?? 0) - (a.joined_at ?? 0) ||
  a.created_at - b.created_at ||
  (a.id < b.id ? -1 : 1)

export function createSignIn(options: SignInOptions): SignIn {
  const { db, clock, codes, starter, limiter, mailer, background, ownerSecret, createAccount } = options
  const links = new SignInLinks(clock)
  /** Email address → when a rejected sign-in was last recorded. */
  const recentRejections = new Map<string, number>()

  async function findUser(trx: Trx, email: string): Promise<Membership | undefined> {
    const [user] = (await listMemberships(trx, email)).sort(compareUse)
    if (user !== undefined || createAccount === null) return user
    const { userId } = await createAccount(trx, email)
    return findMembership(trx, userId)
  }

  async function recordRejection(email: string, address: string | null): Promise<void> {
    const at = clock.now()
    const last = recentRejections.get(email)
    if (last !== undefined && at - last < REJECTION_INTERVAL_MS) return
    const users = await listMemberships(db, email)
    if (users.length === 0) return
    if (recentRejections.size >= MAX_RECENT_REJECTIONS) recentRejections.clear()
    recentRejections.set(email, at)
    for (const { id, workspace_id } of users)
      await transaction(db, async (trx) =>
        recordAuditEvent(trx, {
          kind: 'sign_in.rejected',
          actor: { system: true, workspaceId: workspace_id },
          boxId: null,
          detail: { userId: id, address },
          at,
        }),
      )
  }

  /** The secret has 256 bits: guesses need no limit, and those of other programs at the address must not keep the owner out. */
  async function assertOwnerSecret(secret: string, { address }: Client): Promise<void> {
    if (compareSecrets(secret, await ownerSecret.read())) return
    limiter.count('wrongOwnerSecret', toSubject(address))
    throw new ApiError(
      'unauthorized',
      secret.startsWith(API_KEY_PREFIX)
        ? 'This is an API key, such as that in owner.key. The owner signs in with the link that `box open` prints on the machine of the coordinator, or with the content of sign-in.key in the data directory.'
        : 'This is not the secret in sign-in.key. Read the file in the data directory again: each start of the coordinator writes a new secret.',
    )
  }

  return {
    createFirstLink: () => links.create(db),
    voidLinks: () => links.voidAll(db),
    async createLink(secret, client) {
      await assertOwnerSecret(secret, client)
      return links.create(db)
    },

    async requestCode(email, { address }) {
      const subject = toSubject(address)
      const waitMs = limiter.take('requestCode', subject)
      // Another program at the address, such as a box, may have sent many requests.
      if (waitMs > 0 && !(await codes.isKnownClient(db, email, subject)))
        rejectLimited(waitMs, TOO_MANY_REQUESTS)
      const { issued, isMember } = await codes.exclusively(async (trx) => ({
        issued: await codes.issue(trx, email, { signIn: true }, subject),
        isMember: (await listMemberships(trx, email)).length > 0,
      }))
      if (isMember || createAccount !== null)
        background.run('send a sign-in code', () => mailer.send(createCodeMail('signIn', email, issued.code)))
      return { id: issued.id, expiresAt: toTimestamp(issued.expiresAt) }
    },

    async confirm(attempt, client) {
      const outcome = await codes.exclusivelyFor(attempt.id, 'signIn', async (trx) => {
        const redemption = await codes.redeem(trx, attempt, 'signIn')
        if ('rejected' in redemption) return redemption
        const user = await findUser(trx, redemption.redeemed.email)
        if (user === undefined) return { rejected: null }
        return { signedIn: await starter.start(trx, user, client, 'code') }
      })
      if ('signedIn' in outcome) return outcome.signedIn
      const { rejected } = outcome
      // The rejection is recorded after the response, which would otherwise take longer for the email address of a member.
      if (rejected !== null)
        background.run('record a rejected sign-in', () => recordRejection(rejected.email, client.address))
      limiter.count('wrongCode', toSubject(client.address))
      throw createInvalidCodeError()
    },

    async signInOwner(secret, client) {
      const isLink = isLinkSecret(secret)
      if (!isLink) await assertOwnerSecret(secret, client)
      const start = async (trx: Trx) => {
        if (isLink && !(await links.redeem(trx, secret))) return null
        const owner = await findFirstOwnerMembership(trx)
        if (owner === undefined)
          throw new ApiError(
            'unauthorized',
            'The first workspace has no owner. Sign in with an emailed code.',
          )
        return starter.start(trx, owner, client, isLink ? 'owner_link' : 'owner_key')
      }
      const mayStart = !isLink || (await links.isValid(db, secret))
      const session = mayStart ? await transaction(db, start) : null
      if (session !== null) return session
      limiter.count('wrongOwnerSecret', toSubject(client.address))
      throw new ApiError(
        'unauthorized',
        'This link has been used, or has expired. `box open` on the machine of the coordinator prints another.',
      )
    },
  }
}
