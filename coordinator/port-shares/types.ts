// What the server of shared ports needs of port shares and of their viewers.
import type { EventEmitter } from 'node:events'
import type { PortAudience } from '../../shared/api/port-shares.ts'
import type { Origin } from '../db/notification-hub.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'

export type { PortAudience } from '../../shared/api/port-shares.ts'

/** A live share whose audience this deployment and the policies of the workspace allow. */
export type ServedShare = {
  id: string
  workspaceId: string
  boxId: string
  port: number
  /** The label before the share base in the host name of the link. */
  slug: string
  access: PortAudience
  /** SHA-256 (hex) of the secret of an anyone link; null for other audiences. */
  secretHash: string | null
  /** Milliseconds since the epoch; null: the share does not expire. */
  expiresAt: number | null
  /** Whether the box gets `localhost:<port>` as Host and Origin instead of the host of the link. */
  rewritesHost: boolean
}

/** The query parameter with the secret, in a link for anyone. */
export const SECRET_PARAMETER = 'boxwood_secret'

/** The host names of links: `<slug>.<share base>`. */
export type ShareBase = {
  /** The origin of a link, such as `https://fig-3000-x7k2m9q4.boxes.example.com`. */
  getOrigin(slug: string): string
  /**
   * Returns the slug of a Host header, with or without a port; undefined: the host is not under the share base. Also for
   * names that no link has, such as one of two labels: whatever is under the share base never reaches the API.
   */
  parseHost(host: string | undefined): string | undefined
}

export type PortShares = {
  readonly base: ShareBase
  /** Runs for every request. undefined: unknown, revoked, expired, or not allowed any more. */
  find(slug: string): Promise<{ share: ServedShare; box: BoxRow } | undefined>
  /**
   * Finds a share that find() would find by its slug.
   * @throws ApiError not_found when the share is unknown, has ended, or belongs to a box that the actor does not see;
   *   port_share_disabled, share_links_disabled or share_links_blocked when it is not allowed any more
   */
  get(actor: Actor, shareId: string): Promise<{ share: ServedShare; box: BoxRow }>
  /** Counts an opening of the link. Counts are written in batches. */
  recordOpening(shareId: string): void
  readonly events: EventEmitter<ShareEvents>
}

export type ShareEvents = {
  /**
   * The share is not served any more. Its open requests and WebSockets must be closed. Expiry emits no event.
   * `elsewhere`: another coordinator has committed the change.
   */
  ended: [shareId: string, origin: Origin]
  /** Shares may have ended without an event: those with open requests must be read again. */
  missed: []
}

export type CreatedCode = {
  code: string
  /** Milliseconds since the epoch. */
  expiresAt: number
}

/** The sessions of people at a share for members. A token is valid for one share. */
export type ShareViewers = {
  /**
   * Creates a code that exchange() accepts once, within a minute.
   * @param actor sees the box. The viewer session ends with the credential of the actor, and with the rights of its user
   * @param state of the sign-in that the code ends
   * @throws ApiError rate_limited
   */
  createCode(actor: Actor, share: Pick<ServedShare, 'id' | 'boxId'>, state: string): Promise<CreatedCode>
  /**
   * Creates a code with which a browser signs in without a dashboard session, once, within ten minutes. It is for the main
   * origin: exchange() does not accept it.
   * @param actor see createCode()
   * @throws ApiError rate_limited
   */
  createOpenCode(actor: Actor, share: Pick<ServedShare, 'id' | 'boxId'>): Promise<CreatedCode>
  /** Whether redeemOpenCode() would accept the code, which stays valid. */
  isOpenCode(share: ServedShare, openCode: string): Promise<boolean>
  /**
   * Replaces a code of createOpenCode() by one for exchange().
   * @returns undefined: the code is unknown, expired or already used, or belongs to another share
   */
  redeemOpenCode(share: ServedShare, openCode: string, state: string): Promise<string | undefined>
  /** undefined: the code is unknown, expired or already used, or belongs to another share or another state. */
  exchange(
    share: ServedShare,
    code: string,
    state: string,
  ): Promise<{ token: string; maxAgeSeconds: number } | undefined>
  /** The actor of a viewer session. undefined: the session is unknown or has ended, or the actor does not see the box any more. */
  find(share: ServedShare, token: string): Promise<Actor | undefined>
}
