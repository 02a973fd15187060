// What a server cannot do to protect boxes from each other. Each lack is logged once, and described to the operator.
import type { Logger } from 'pino'
import { readReason } from './client.ts'

export class Protections {
  readonly #log: Pick<Logger, 'warn'>
  /** The members whose firewall cannot filter the frames of boxes. */
  readonly #withoutFilters = new Set<string>()
  readonly #logged = new Set<string>()
  #sharesUserIds = false

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log
  }

  /** Whether boxes on the member get filters, which prevent that a box uses the MAC or IPv4 address of another one. */
  hasFilters(location: string): boolean {
    return !this.#withoutFilters.has(location)
  }

  /** The firewall of the member has refused the filters of a box. */
  reportMissingFilters(location: string, err: unknown): void {
    this.#withoutFilters.add(location)
    this.#logOnce(
      `filters ${location}`,
      { err, location },
      'boxes can use the network addresses of each other: the firewall of the server cannot filter bridges; install nftables, or iptables with ebtables',
    )
  }

  /** The server has no user ids left that no other box has. */
  reportSharedUserIds(err?: unknown): void {
    this.#sharesUserIds = true
    this.#logOnce(
      'user ids',
      { err },
      'boxes have the same user ids: extend the ranges of root in /etc/subuid and /etc/subgid of the server, by 65536 ids a box',
    )
  }

  /** The server may have been upgraded: its firewall is tried again. */
  retryFilters(): void {
    this.#withoutFilters.clear()
  }

  /** Sentences about the isolation between boxes. */
  describe(): string {
    const sentences = [
      this.#sharesUserIds
        ? 'each with a root file system of its own. Some have the same user ids, because /etc/subuid of the server has too few.'
        : 'each with a root file system and user ids of its own.',
      'They cannot connect to each other.',
      ...(this.#withoutFilters.size > 0
        ? [
            'A box can use the network addresses of another one, because the firewall of the server cannot filter bridges.',
          ]
        : []),
    ]
    return sentences.join(' ')
  }

  #logOnce(key: string, fields: object, message: string): void {
    if (this.#logged.has(key)) return
    this.#logged.add(key)
    this.#log.warn(fields, message)
  }
}

/** Whether Incus did not start the network device of an instance because the firewall refused its filters. */
export const isFilterFailure = (error: unknown): boolean =>
  /device "eth0".*(ebtables|nft|bridge filter)/is.test(readReason(error))

/** Whether the range of user ids of the server is too small for ids that no other box has. */
export const isUserIdFailure = (error: unknown): boolean =>
  /idmap|not enough uid|uid\/gid/i.test(readReason(error))
