// Connects to a listening TCP socket of a process of the box.
import type { Socket } from 'node:net'
import { ApiError } from '../../shared/errors.ts'
import type { BoxProcesses } from '../vitals/box-processes.ts'
import { type BoxListeners, createBoxListeners } from './box-listeners.ts'
import { LocalSocket } from './local-socket.ts'
import type { LoopbackAddress } from './select-listeners.ts'

/** A local server accepts immediately, unless its queue of connections is full. */
const CONNECT_TIMEOUT_MS = 10_000

const ADDRESSES: readonly LoopbackAddress[] = ['127.0.0.1', '::1']
/** Nothing listens, or the kernel has no IPv6. */
const REFUSED = new Set(['ECONNREFUSED', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ENETUNREACH'])

export type PortConnector = {
  /**
   * The socket has no listener for 'data' and allows half-open connections.
   * @throws ApiError not_found when no process of the box listens; exec_failed when the server does not accept the connection
   */
  connect(port: number, signal: AbortSignal): Promise<Socket>
}

export type PortConnectorOptions = {
  boxProcesses: BoxProcesses
  /** Whether the box has its own network: all sockets belong to it. Otherwise only those of its processes. */
  ownNetwork: boolean
}

export const createPortConnector = ({ boxProcesses, ownNetwork }: PortConnectorOptions): PortConnector =>
  createConnector(ownNetwork ? null : createBoxListeners({ processes: boxProcesses }))

/** @param listeners null: all sockets belong to the box */
export const createConnector = (listeners: BoxListeners | null): PortConnector => ({
  async connect(port, signal) {
    for (const address of ADDRESSES) {
      const before = await listeners?.find(address, port)
      if (listeners !== null && before === undefined) continue
      const socket = await openSocket(address, port, signal)
      if (socket === undefined) continue
      if (listeners === null) return socket
      // Another process may have listened on the port meanwhile.
      const after = await listeners.find(address, port).catch((error: unknown) => {
        socket.destroy()
        throw error
      })
      if (after?.join() === before?.join()) return socket
      socket.resetAndDestroy()
    }
    throw new ApiError('not_found', `No process of the box listens on port ${port}.`)
  },
})

/** undefined: nothing listens at this address. */
async function openSocket(
  address: LoopbackAddress,
  port: number,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  signal.throwIfAborted()
  const socket = new LocalSocket({ allowHalfOpen: true })
  socket.setNoDelay(true).connect({ host: address, port })
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)])
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = () => reject(deadline.reason)
  deadline.addEventListener('abort', onAbort)
  socket.once('connect', resolve)
  // An error after the connection was established must not be an uncaught exception.
  socket.on('error', reject)
  try {
    await promise
    return socket
  } catch (error) {
    socket.destroy()
    if (signal.aborted) throw signal.reason
    if (error instanceof Error && 'code' in error && REFUSED.has(String(error.code))) return undefined
    throw new ApiError('exec_failed', `The server on port ${port} of the box does not accept connections.`, {
      cause: error,
    })
  } finally {
    deadline.removeEventListener('abort', onAbort)
  }
}
