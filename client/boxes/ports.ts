// The ports of a box, and the links to them.
import type { CreatePortShare, PortShare } from '../generated/types.ts'
import type { CallOptions } from '../http/calls.ts'
import type { Context } from './context.ts'
import { requireField } from './require-field.ts'

export type ShareOptions = CallOptions & {
  /** Who may open the link. Default: the members of the workspace. */
  audience?: CreatePortShare['access']
  /** When a link for anyone or a public one ends, in milliseconds. Default: after 7 days. */
  expiresInMs?: number
  /** Sends `localhost` and the port as Host, for servers that refuse other names. */
  rewriteHost?: boolean
}

export class Ports {
  readonly #context: Context
  readonly #boxId: string

  constructor(context: Context, boxId: string) {
    this.#context = context
    this.#boxId = boxId
  }

  /** The listening ports, and the links. */
  list(options?: CallOptions) {
    return this.#context.routes.portShares.listForBox(this.#boxId, options)
  }

  /** Creates a link, or returns that of the port. The secret of a link for anyone is in `url` only when it is new. */
  async share(
    port: number,
    { audience, expiresInMs, rewriteHost, ...options }: ShareOptions = {},
  ): Promise<PortShare> {
    const request = {
      port,
      ...(audience !== undefined && { access: audience }),
      ...(expiresInMs !== undefined && { expiresIn: expiresInMs / 1000 }),
      ...(rewriteHost !== undefined && { rewriteHost }),
    }
    return requireField(await this.#context.routes.portShares.create(this.#boxId, request, options), 'share')
  }

  /** Ends the link to a port. Nothing happens when it has none. */
  async unshare(port: number, options?: CallOptions): Promise<void> {
    const shares = requireField(await this.list(options), 'shares')
    for (const share of shares.filter((candidate) => candidate.port === port))
      await this.#context.routes.portShares.revoke(share.id, options)
  }
}
