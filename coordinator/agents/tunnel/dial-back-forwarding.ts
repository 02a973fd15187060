// Forwards dial-back connections to the coordinator that waits for them: an agent's connection may arrive at any of them.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../shared/errors.ts'
import { createForwardToReplica } from '../../http/forward-to-replica.ts'
import { getForwarded } from '../../http/forwarded-requests.ts'
import { serveUpgrade } from '../../http/websocket.ts'
import type { Peers } from '../../replicas/peers.ts'

export type DialBackForwarding = {
  /** The ids of this coordinator begin with it. */
  idPrefix: string
  /** Returns false when the id is one of this coordinator. Rejects when the connection cannot be forwarded. */
  forward(request: IncomingMessage, response: ServerResponse, id: string): Promise<boolean>
  forwardUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, id: string): Promise<boolean>
}

const SEPARATOR = '-'

export function createDialBackForwarding(peers: Peers, replicaId: string): DialBackForwarding {
  async function forward(request: IncomingMessage, response: ServerResponse, id: string): Promise<boolean> {
    const [issuer = '', random] = id.split(SEPARATOR)
    if (random === undefined || issuer === replicaId || getForwarded(request) !== undefined) return false
    const send = createForwardToReplica(peers, { request, response }, { clientAddress: null })
    if ((await send(issuer)) !== 'forwarded')
      throw new ApiError(
        'not_found',
        'The coordinator that waits for the dial-back connection does not respond.',
      )
    return true
  }

  return {
    idPrefix: replicaId + SEPARATOR,
    forward,
    forwardUpgrade: (request, socket, head, id) =>
      new Promise((resolve, reject) => {
        const [issuer = '', random] = id.split(SEPARATOR)
        if (random === undefined || issuer === replicaId || getForwarded(request) !== undefined)
          return resolve(false)
        serveUpgrade(request, socket, head, (_request, response) => {
          forward(request, response, id).then(resolve, reject)
        })
      }),
  }
}
