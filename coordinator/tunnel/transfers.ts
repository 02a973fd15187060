// Accepts dial-back connections for large bodies: one HTTP request per transfer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { TRANSFER_PATH } from '../../shared/protocol.ts'
import { type Authenticate, authenticateBox } from './credentials.ts'
import { createDialBacks, type DialBacks } from './dial-backs.ts'
import type { TransferConnection, Transfers } from './types.ts'

export type TransferHub = Transfers &
  Pick<DialBacks<TransferConnection>, 'disconnect' | 'close'> & {
    handleTransfer(request: IncomingMessage, response: ServerResponse): void
  }

/** A transfer without progress for this long is closed: its box may have disconnected without a FIN. */
const IDLE_TIMEOUT_MS = 120_000

/** @param options.dialMs how long an agent may take to connect */
export function createTransfers(options: {
  log: Logger
  authenticate: Authenticate
  dialMs: number
  /** Default: 2 minutes. */
  idleMs?: number
}): TransferHub {
  const { log, authenticate, dialMs, idleMs = IDLE_TIMEOUT_MS } = options
  const { expect, claim, disconnect, close } = createDialBacks<TransferConnection>(dialMs)

  async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const boxId = await authenticateBox(request, authenticate)
    if (boxId === null) throw new ApiError('unauthorized', 'Unknown box id or wrong token.')
    if (request.method !== 'GET' && request.method !== 'PUT') throw new ApiError('method_not_allowed')
    const deliver = claim(boxId, (request.url ?? '').slice(TRANSFER_PATH.length), request.socket)
    request.socket.setTimeout(idleMs, () => request.socket.destroy())
    deliver({ request, response })
  }

  return {
    expect,
    disconnect,
    close,
    handleTransfer(request, response) {
      accept(request, response).catch((err: unknown) => {
        const isRejection = err instanceof ApiError
        if (!isRejection) log.error({ err }, 'failed to accept a transfer')
        const rejection = isRejection ? err : new ApiError('control_plane_unavailable')
        // `connection: close`, because the request body is not read.
        response.writeHead(rejection.status, { 'content-type': 'application/json', connection: 'close' })
        response.end(JSON.stringify(edgeErrorBody(rejection)))
      })
    },
  }
}
