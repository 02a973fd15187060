// The open requests and WebSockets of all shares. They are closed at once when their share ends or expires.
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../shared/clock.ts'
import type { PortShares, ServedShare } from '../../port-shares/types.ts'

type OpenShare = {
  share: ServedShare
  responses: Set<ServerResponse>
  expiryTimer: NodeJS.Timeout | undefined
}

/** The longest delay of setTimeout(), about 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

export type OpenSharesOptions = { clock: Clock; shares: Pick<PortShares, 'events' | 'find'> }

export class OpenShares {
  readonly #clock: Clock
  readonly #find: PortShares['find']
  readonly #shares = new Map<string, OpenShare>()
  /** Responses that end only when the viewer or the box ends them: event streams and upgraded connections. */
  readonly #streams = new Set<ServerResponse>()
  #endedCount = 0
  #isClosing = false

  constructor({ clock, shares: { events, find } }: OpenSharesOptions) {
    this.#clock = clock
    this.#find = find
    events.on('ended', (shareId) => {
      this.#endedCount += 1
      this.#end(this.#shares.get(shareId))
    })
    events.on('missed', () => {
      this.#endedCount += 1
      for (const open of this.#shares.values()) void this.#check(open)
    })
  }

  /** Number of shares that have, or may have, ended. Read it before a share is read. */
  get endedCount(): number {
    return this.#endedCount
  }

  /** Number of open responses and upgraded connections. */
  get size(): number {
    return [...this.#shares.values()].reduce((sum, { responses }) => sum + responses.size, 0)
  }

  /** Adds a response until it is closed. */
  add(share: ServedShare, response: ServerResponse): void {
    if (response.destroyed) return
    const open = this.#shares.get(share.id) ?? this.#addShare(share)
    open.responses.add(response)
    // The time of expiry may have changed.
    open.share = share
    this.#armExpiryTimer(open)
    response.once('close', () => {
      open.responses.delete(response)
      this.#streams.delete(response)
      if (open.responses.size > 0) return
      clearTimeout(open.expiryTimer)
      if (this.#shares.get(share.id) === open) this.#shares.delete(share.id)
    })
  }

  /** Marks a response that would keep the coordinator from stopping. */
  addStream(response: ServerResponse): void {
    if (response.destroyed) return
    if (this.#isClosing) response.destroy()
    else this.#streams.add(response)
  }

  /** Closes event streams and upgraded connections from now on. */
  endStreams(): void {
    this.#isClosing = true
    for (const response of this.#streams) response.destroy()
  }

  #addShare(share: ServedShare): OpenShare {
    const open: OpenShare = { share, responses: new Set(), expiryTimer: undefined }
    this.#shares.set(share.id, open)
    return open
  }

  #armExpiryTimer(open: OpenShare): void {
    clearTimeout(open.expiryTimer)
    const { expiresAt } = open.share
    if (expiresAt === null) return
    const leftMs = expiresAt - this.#clock.now()
    const fire = () => {
      if (this.#clock.now() >= expiresAt) this.#end(open)
      else this.#armExpiryTimer(open)
    }
    open.expiryTimer = setTimeout(fire, Math.min(Math.max(leftMs, 1), MAX_TIMER_MS)).unref()
  }

  /** Ends the share when it is not served any more, or cannot be read: viewers connect again. */
  async #check(open: OpenShare): Promise<void> {
    const found = await this.#find(open.share.slug).catch(() => undefined)
    if (found?.share.id !== open.share.id) this.#end(open)
  }

  #end(open: OpenShare | undefined): void {
    for (const response of open?.responses ?? []) response.destroy()
  }
}
