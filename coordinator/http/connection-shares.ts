// The shares of the connections with a credential: how many of all connections one credential, user or workspace may have.
import { listShares, rejectFull, type Slot, Slots, type Subject } from '../base/slots.ts'

/**
 * What a connection is used for: requests with a credential, the tunnel of an agent, or the other connections of a box. Each box
 * needs its tunnel, so tunnels have no share of a workspace.
 */
export type ConnectionUse = 'credential' | 'tunnel' | 'box'

/** The slots of a connection. */
export type ConnectionShare = { subject: Subject; use: ConnectionUse; release: () => void }

/** The parts of all connections that may belong to one credential, the credentials of a user, and those of a workspace. */
const PARTS = { credential: 1 / 8, user: 1 / 4, workspace: 1 / 2 } as const
/** A tunnel that is lost without a FIN is open beside those with which the agent has reconnected. */
const TUNNELS_PER_BOX = 16
const NOUN = 'open connections'
const RETRY_MS = 5_000

export class ConnectionShares {
  readonly #slots = new Slots()
  readonly #limits: { perCredential: number; perUser: number; perWorkspace: number; total: number }

  /** @param total of all connections */
  constructor(total: number) {
    this.#limits = {
      perCredential: Math.ceil(total * PARTS.credential),
      perUser: Math.ceil(total * PARTS.user),
      perWorkspace: Math.ceil(total * PARTS.workspace),
      total,
    }
  }

  /**
   * @param connection `close` closes it for that of another subject
   * @throws ApiError rate_limited when the subject has its share
   */
  acquire(
    subject: Subject,
    use: ConnectionUse,
    connection: { close(): void; isIdle(): boolean },
  ): ConnectionShare {
    const slots = this.#listSlots(subject, use)
    const acquisition = this.#slots.acquire(slots, {
      evict: () => connection.close(),
      isIdle: () => connection.isIdle(),
    })
    if ('full' in acquisition) return rejectFull(acquisition.full, RETRY_MS)
    return { subject, use, release: acquisition.release }
  }

  /** Closes a connection of the workspace that has the most. Returns false when each workspace has at most one. */
  closeOne(): boolean {
    return this.#slots.evictOne(`${NOUN} total`)
  }

  #listSlots(subject: Subject, use: ConnectionUse): Slot[] {
    if (use === 'credential') return listShares(NOUN, subject, this.#limits)
    if (use === 'box')
      return listShares(
        NOUN,
        { ...subject, kind: 'box' },
        { ...this.#limits, perCredential: this.#limits.perUser },
      )
    const key = `tunnels ${subject.credentialId}`
    return [{ key, limit: TUNNELS_PER_BOX, holder: 'This box', noun: 'tunnels' }]
  }
}

export const isShareOf = (
  share: ConnectionShare | undefined,
  { credentialId, workspaceId }: Subject,
  use: ConnectionUse,
): boolean =>
  share?.use === use &&
  share.subject.credentialId === credentialId &&
  share.subject.workspaceId === workspaceId
