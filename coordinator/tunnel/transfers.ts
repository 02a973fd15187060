// Large bodies beside the tunnel: a one-time id is expected, and the box's agent dials in and presents it.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { TRANSFER_PATH } from '../../shared/protocol.ts'
import { type Authenticate, authenticatedBox } from './credentials.ts'
import type { DialedTransfer, Transfers } from './types.ts'

export type TransferHub = Transfers & {
  handleTransfer(request: IncomingMessage, response: ServerResponse): void
  close(): void
}

/** A transfer on which nothing has moved for this long is given up: its box may be gone without a word. */
const IDLE_MS = 120_000

type Pending = { boxId: string; settle(dialed: DialedTransfer): void; fail(error: Error): void }

/** @param options.dialMs how long the agent has to dial. */
export function createTransfers(options: {
  log: Logger
  authenticate: Authenticate
  dialMs: number
  /** How long nothing may move on a transfer; two minutes unless told. */
  idleMs?: number
}): TransferHub {
  const pending = new Map<string, Pending>()

  async function take(request: IncomingMessage): Promise<Pending> {
    const boxId = await authenticatedBox(request, options.authenticate)
    if (boxId === null) throw new ApiError('unauthorized', 'No box has this id and token.')
    if (request.method !== 'GET' && request.method !== 'PUT') throw new ApiError('method_not_allowed')
    const id = (request.url ?? '').slice(TRANSFER_PATH.length)
    const transfer = pending.get(id)
    // Another box's transfer looks like none, and stays there for the box it belongs to.
    if (transfer === undefined || transfer.boxId !== boxId)
      throw new ApiError('not_found', 'No such transfer.')
    pending.delete(id)
    return transfer
  }

  return {
    expect(boxId) {
      const id = randomBytes(16).toString('hex')
      const { promise, resolve, reject } = Promise.withResolvers<DialedTransfer>()
      // A caller that released the transfer does not wait for it any more.
      promise.catch(() => undefined)
      const timer = setTimeout(
        () => entry.fail(new ApiError('box_unreachable', 'The box did not dial in.')),
        options.dialMs,
      )
      const forget = () => {
        clearTimeout(timer)
        pending.delete(id)
      }
      const entry: Pending = {
        boxId,
        settle(dialed) {
          forget()
          resolve(dialed)
        },
        fail(error) {
          forget()
          reject(error)
        },
      }
      pending.set(id, entry)
      return {
        id,
        dialed: promise,
        release: () => entry.fail(new ApiError('box_unreachable', 'The transfer was released.')),
      }
    },
    handleTransfer(request, response) {
      take(request).then(
        (transfer) => {
          request.socket.setTimeout(options.idleMs ?? IDLE_MS, () => request.socket.destroy())
          transfer.settle({ request, response })
        },
        (error: unknown) => {
          const known = error instanceof ApiError
          if (!known) options.log.error({ err: error }, 'a transfer could not be accepted')
          const refusal = known ? error : new ApiError('control_plane_unavailable')
          // Whatever body is on its way is not read: the connection ends with the answer.
          response.writeHead(refusal.status, { 'content-type': 'application/json', connection: 'close' })
          response.end(JSON.stringify(edgeErrorBody(refusal)))
        },
      )
    },
    close() {
      for (const transfer of [...pending.values()]) transfer.fail(new ApiError('box_unreachable'))
    },
  }
}
