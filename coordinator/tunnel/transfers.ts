// Large bodies beside the tunnel: each is a plain HTTP request that the box's agent makes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { TRANSFER_PATH } from '../../shared/protocol.ts'
import { type Authenticate, authenticatedBox } from './credentials.ts'
import { createDialIns, type DialIns } from './dial-ins.ts'
import type { DialedTransfer, Transfers } from './types.ts'

export type TransferHub = Transfers &
  Pick<DialIns<DialedTransfer>, 'cut' | 'close'> & {
    handleTransfer(request: IncomingMessage, response: ServerResponse): void
  }

/** A transfer on which nothing has moved for this long is given up: its box may be gone without a word. */
const IDLE_MS = 120_000

/** @param options.dialMs how long the agent has to dial. */
export function createTransfers(options: {
  log: Logger
  authenticate: Authenticate
  dialMs: number
  /** How long nothing may move on a transfer; two minutes unless told. */
  idleMs?: number
}): TransferHub {
  const { expect, take, cut, close } = createDialIns<DialedTransfer>(options.dialMs)

  async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const boxId = await authenticatedBox(request, options.authenticate)
    if (boxId === null) throw new ApiError('unauthorized', 'No box has this id and token.')
    if (request.method !== 'GET' && request.method !== 'PUT') throw new ApiError('method_not_allowed')
    const settle = take(boxId, (request.url ?? '').slice(TRANSFER_PATH.length), request.socket)
    request.socket.setTimeout(options.idleMs ?? IDLE_MS, () => request.socket.destroy())
    settle({ request, response })
  }

  return {
    expect,
    cut,
    close,
    handleTransfer(request, response) {
      accept(request, response).catch((error: unknown) => {
        const known = error instanceof ApiError
        if (!known) options.log.error({ err: error }, 'a transfer could not be accepted')
        const refusal = known ? error : new ApiError('control_plane_unavailable')
        // Whatever body is on its way is not read: the connection ends with the answer.
        response.writeHead(refusal.status, { 'content-type': 'application/json', connection: 'close' })
        response.end(JSON.stringify(edgeErrorBody(refusal)))
      })
    },
  }
}
