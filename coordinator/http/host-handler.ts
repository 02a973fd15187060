// Serves requests by their Host header, such as those to shared ports. The API, its pages and the agents do not get them.
import type { IncomingMessage, RequestListener } from 'node:http'

export type HostHandler = {
  /** Whether requests with this Host header are for the handler. */
  accepts(host: string | undefined): boolean
  /** Whether the handler gets the connection of an upgrade request. Otherwise the request is served without the upgrade. */
  acceptsUpgrade(request: IncomingMessage): boolean
  /**
   * For an upgrade, getUpgrade() returns the connection. The listener must respond to `Expect: 100-continue`, and to requests
   * after rejectNewRequests().
   */
  readonly listener: RequestListener
}
