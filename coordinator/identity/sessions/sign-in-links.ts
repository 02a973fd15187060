// One-time links that sign in the owner. In memory, like the secret of sign-in.key: a start voids them.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../shared/clock.ts'
import { hashSecret } from '../../http/hash-secret.ts'

export const LINK_LIFETIME_MS = 15 * 60_000
/** Each program that reads sign-in.key can create links; the oldest one is dropped. */
const MAX_LINKS = 20

export type SignInLink = { secret: string; expiresAt: number }

export class SignInLinks {
  readonly #clock: Pick<Clock, 'now'>
  /** Hash of the secret → when it expires. Oldest first. */
  readonly #links = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  create(): SignInLink {
    const secret = `bwl_${randomBytes(32).toString('base64url')}`
    const expiresAt = this.#clock.now() + LINK_LIFETIME_MS
    this.#links.set(hashSecret(secret), expiresAt)
    for (const hash of this.#links.keys()) if (this.#links.size > MAX_LINKS) this.#links.delete(hash)
    return { secret, expiresAt }
  }

  /** Returns whether the link is valid, and voids it. */
  redeem(secret: string): boolean {
    const hash = hashSecret(secret)
    const expiresAt = this.#links.get(hash)
    this.#links.delete(hash)
    return expiresAt !== undefined && this.#clock.now() < expiresAt
  }
}

export const isLinkSecret = (secret: string): boolean => secret.startsWith('bwl_')
