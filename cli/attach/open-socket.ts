// Opens the WebSockets of attachments with ws, which reports refusals and pings.
import { BoxwoodError, ConnectionError, createError } from '../../client/http/errors.ts'
import type { Socket, SocketHandlers } from '../../client/http/socket.ts'
import { createApiError, isUnreachable } from '../connection/api-errors.ts'
import type { ConnectResult } from '../connection/api-requests.ts'
import { createVersionError } from '../connection/server-data.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** Rejects with a BoxwoodError whose cause is the CliError, and with the errors of the connection after which no retry helps. */
export async function openSocket(
  connecting: Promise<ConnectResult>,
  { onOpen, onMessage, onPing, onClose }: SocketHandlers,
): Promise<Socket> {
  const result = await connecting.catch((error) => {
    if (!isUnreachable(error)) throw error
    throw new ConnectionError({ code: 'no_response', message: error.message, status: 0, cause: error })
  })
  if (!result.ok) throw toRefusal(result)
  const ws = result.socket
  const socket: Socket = {
    // After a failure to send, the connection is closed.
    send: (data) => ws.send(data, () => undefined),
    close: () => ws.close(1000),
    reportsPings: true,
  }
  let violation: string | undefined
  ws.on('message', (data, isBinary) => {
    if (Buffer.isBuffer(data)) onMessage(isBinary ? (data as Buffer<ArrayBuffer>) : data.toString())
  })
  ws.on('ping', () => onPing?.())
  ws.on('error', (error) => {
    // Other errors are those of the network.
    if ('code' in error && String(error.code).startsWith('WS_ERR_')) violation = error.message
  })
  ws.once('close', (code) => onClose(code, violation))
  onOpen?.(socket)
  ws.resume()
  return socket
}

const toRefusal = ({ error, status, retryAfter }: Extract<ConnectResult, { ok: false }>): BoxwoodError =>
  createError({
    code: error.code ?? 'invalid_response',
    message: error.message,
    status,
    retryAfterMs: retryAfter === null ? null : retryAfter * 1000,
    cause: error,
  })

/** The error of an attachment in the words of `box`. */
export function toCliError(error: unknown): unknown {
  if (!(error instanceof BoxwoodError)) return error
  const { cause, code, message, status } = error
  if (cause instanceof CliError) return cause
  if (code === 'invalid_response') return createVersionError(message)
  return status === 0 ? new CliError(EXIT.unreachable, message) : createApiError(code, message)
}
