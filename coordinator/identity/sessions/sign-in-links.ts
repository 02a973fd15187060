// One-time links that sign in the owner, at any coordinator of the database.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../shared/clock.ts'
import type { Db } from '../../db/open.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { lockValue, readValue, setValue } from '../../deployment/values.ts'
import { hashSecret } from '../../http/hash-secret.ts'

export const LINK_LIFETIME_MS = 15 * 60_000
/** Each program that reads sign-in.key can create links; the oldest one is dropped. */
const MAX_LINKS = 20
const NAME = 'sign_in_links'

export type SignInLink = { secret: string; expiresAt: number }
type StoredLink = { hash: string; expiresAt: number }

export class SignInLinks {
  readonly #clock: Pick<Clock, 'now'>

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  async create(db: Db): Promise<SignInLink> {
    const secret = `bwl_${randomBytes(32).toString('base64url')}`
    const expiresAt = this.#clock.now() + LINK_LIFETIME_MS
    await transaction(db, async (trx) => {
      const links = [...(await this.#lock(trx)), { hash: hashSecret(secret), expiresAt }]
      await setValue(trx, NAME, JSON.stringify(links.slice(-MAX_LINKS)))
    })
    return { secret, expiresAt }
  }

  /** Whether redeem() would find the link. Wrong secrets must not delay others by a lock. */
  async isValid(db: Db, secret: string): Promise<boolean> {
    const hash = hashSecret(secret)
    return this.#parse(await readValue(db, NAME)).some((link) => link.hash === hash)
  }

  /** Returns whether the link is valid, and voids it. Call it before anything else is locked. */
  async redeem(trx: Trx, secret: string): Promise<boolean> {
    const hash = hashSecret(secret)
    const links = await this.#lock(trx)
    const others = links.filter((link) => link.hash !== hash)
    if (others.length === links.length) return false
    await setValue(trx, NAME, JSON.stringify(others))
    return true
  }

  /** Voids all links, as the start of the only coordinator does with the secret of the owner. */
  async voidAll(db: Db): Promise<void> {
    await transaction(db, async (trx) => {
      if ((await this.#lock(trx)).length > 0) await setValue(trx, NAME, '[]')
    })
  }

  async #lock(trx: Trx): Promise<StoredLink[]> {
    return this.#parse(await lockValue(trx, NAME))
  }

  /** Returns the links that have not expired, the oldest first. */
  #parse(value: string): StoredLink[] {
    const now = this.#clock.now()
    const links: StoredLink[] = JSON.parse(value || '[]')
    return links.filter(({ expiresAt }) => now < expiresAt)
  }
}

export const isLinkSecret = (secret: string): boolean => secret.startsWith('bwl_')
