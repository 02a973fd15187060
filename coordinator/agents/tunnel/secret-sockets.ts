// Accepts the WebSockets that carry connections of programs of a box to hosts of secrets. The agent opens them without a request
// of the coordinator.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { MAX_ATTACH_MESSAGE_BYTES } from '../../../shared/attach-format.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { SECRET_PATH_PREFIX } from '../../../shared/protocol.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import { type Authenticate, authenticateBox, type OnAuthenticated, WRONG_CREDENTIALS } from './credentials.ts'
import { type Rejection, rejectUpgrade } from './reject-upgrade.ts'
import type { SecretConnectionServer, SecretConnections } from './types.ts'
import { createWebSocketServer } from './websocket-server.ts'

/** The response to the agent instead of the upgrade. */
export class RejectedUpgrade extends Error {
  override name = 'RejectedUpgrade'
  readonly rejection: Rejection

  constructor(rejection: Rejection) {
    super(rejection.message)
    this.rejection = rejection
  }
}

export type SecretSockets = SecretConnections & {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes the connections of a box. */
  disconnect(boxId: string): void
  close(): void
}

export type SecretSocketsOptions = {
  log: Logger
  clock: Clock
  authenticate: Authenticate
  onAuthenticated?: OnAuthenticated | undefined
}

/** Open connections of a box. */
export const MAX_OPEN = 512
/** Connection attempts of a box: programs open all connections of a burst at once. */
const ATTEMPTS = { capacity: 1000, perSecond: 50 }

const UNAVAILABLE: Rejection = {
  status: 503,
  code: 'control_plane_unavailable',
  message: 'The coordinator cannot accept the connection now. Try again.',
}

export function createSecretSockets(options: SecretSocketsOptions): SecretSockets {
  const { log, authenticate, onAuthenticated } = options
  const webSockets = createWebSocketServer(MAX_ATTACH_MESSAGE_BYTES)
  const attempts = createTokenBuckets(options.clock, ATTEMPTS)
  const openByBox = new Map<string, Set<Duplex>>()
  let server: SecretConnectionServer | null = null
  let isClosed = false

  function track(boxId: string, socket: Duplex): void {
    const sockets = openByBox.get(boxId) ?? new Set()
    openByBox.set(boxId, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && openByBox.get(boxId) === sockets) openByBox.delete(boxId)
    })
  }

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (err: Error) => log.debug({ err }, 'agent disconnected before the upgrade')
    socket.on('error', onError)
    if (server === null || isClosed) throw new RejectedUpgrade(UNAVAILABLE)
    const box = await authenticateBox(request, authenticate)
    if (box === null)
      throw new RejectedUpgrade({ status: 401, code: 'unauthorized', message: WRONG_CREDENTIALS })
    if (socket.destroyed) return
    const { boxId } = box
    const waitMs = attempts.take(boxId)
    if (waitMs > 0 || (openByBox.get(boxId)?.size ?? 0) >= MAX_OPEN)
      throw new RejectedUpgrade({
        status: 429,
        code: 'rate_limited',
        message: `The box has more than ${MAX_OPEN} connections to hosts of its secrets, or opens too many in a short time.`,
      })
    // Tracked from now on: disconnect() also closes a connection that is being admitted.
    track(boxId, socket)
    onAuthenticated?.(socket, box, 'other')
    const serve = await server.admit(boxId, (request.url ?? '').slice(SECRET_PATH_PREFIX.length))
    if (socket.destroyed || isClosed) return void socket.destroy()
    webSockets.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      ws.pause()
      ws.on('error', () => undefined)
      serve(ws)
    })
  }

  function disconnect(boxId: string): void {
    for (const socket of [...(openByBox.get(boxId) ?? [])]) socket.destroy()
  }

  return {
    setServer(added) {
      server = added
    },
    handleUpgrade(request, socket, head) {
      accept(request, socket, head).catch((err: unknown) => {
        if (err instanceof ApiError) return rejectUpgrade(socket, err)
        if (!(err instanceof RejectedUpgrade))
          log.error({ err }, 'failed to accept a connection to a host of a secret')
        rejectUpgrade(socket, err instanceof RejectedUpgrade ? err.rejection : UNAVAILABLE)
      })
    },
    disconnect,
    close() {
      isClosed = true
      for (const boxId of [...openByBox.keys()]) disconnect(boxId)
    },
  }
}
