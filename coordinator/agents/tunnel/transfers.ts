// Accepts dial-back connections for large bodies: one HTTP request per transfer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError, edgeErrorBody } from '../../../shared/errors.ts'
import { TRANSFER_PATH_PREFIX } from '../../../shared/protocol.ts'
import { type Authenticate, authenticateBox, WRONG_CREDENTIALS } from './credentials.ts'
import type { DialBackForwarding } from './dial-back-forwarding.ts'
import { createDialBacks, type DialBackOptions, type DialBacks } from './dial-backs.ts'
import type { TransferConnection, Transfers } from './types.ts'

export type TransferAcceptor = Transfers &
  Pick<DialBacks<TransferConnection>, 'disconnect' | 'close'> & {
    handleTransfer(request: IncomingMessage, response: ServerResponse): void
  }

/** Closes a transfer whose socket is idle for this long: the box may have disconnected without a FIN. */
const IDLE_TIMEOUT_MS = 120_000

export type TransfersOptions = DialBackOptions & {
  log: Logger
  authenticate: Authenticate
  /** Default: 2 minutes. */
  idleTimeoutMs?: number
  /** Default: no other coordinator uses the database. */
  forwarding?: DialBackForwarding | undefined
}

export function createTransfers(options: TransfersOptions): TransferAcceptor {
  const { log, authenticate, idleTimeoutMs = IDLE_TIMEOUT_MS, forwarding } = options
  const { expect, consumeId, disconnect, close } = createDialBacks<TransferConnection>({
    ...options,
    idPrefix: forwarding?.idPrefix,
  })

  async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const box = await authenticateBox(request, authenticate)
    if (box === null) throw new ApiError('unauthorized', WRONG_CREDENTIALS)
    if (request.method !== 'GET' && request.method !== 'PUT') {
      throw new ApiError('method_not_allowed', 'A transfer must be a GET or PUT request.')
    }
    const id = (request.url ?? '').slice(TRANSFER_PATH_PREFIX.length)
    if (await forwarding?.forward(request, response, id)) return
    const { socket } = request
    const deliver = consumeId(box, id, socket, response)
    // The connection of another coordinator serves other requests afterwards, for which Node sets its own timeout again.
    const destroy = () => socket.destroy()
    socket.setTimeout(idleTimeoutMs, destroy)
    response.once('close', () => socket.off('timeout', destroy))
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
        response.writeHead(rejection.status, { 'content-type': 'application/json', connection: 'close' })
        response.end(JSON.stringify(edgeErrorBody(rejection)))
      })
    },
  }
}
