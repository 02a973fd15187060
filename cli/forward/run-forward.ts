// Runs `box forward`: one local listener per forward, and one WebSocket per connection.
import type { Socket } from 'node:net'
import { joinConnections } from '../../shared/join-connections.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatJson, print, printMessage } from '../output/print.ts'
import { connectToBox } from './connect-to-box.ts'
import { type LocalListener, listenLocally } from './local-listener.ts'
import type { Forward } from './parse-forward.ts'

/** Resolves at Ctrl-C. Rejects with CliError when a port is not available, or the credential may not use the box. */
export async function runForward(
  session: Session,
  edge: EdgeClient,
  forwards: readonly Forward[],
  { json }: { json: boolean },
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  const stop = new AbortController()
  const removeInterruptHandler = session.onInterrupt(ended.resolve)
  const onAbort = () => ended.reject(session.signal.reason)
  session.signal.addEventListener('abort', onAbort)
  if (session.signal.aborted) onAbort()
  const listeners: LocalListener[] = []
  try {
    for (const forward of forwards) {
      const serve = createServe(edge, forward, { signal: stop.signal, onRefused: ended.reject })
      listeners.push(await listenLocally(forward, serve))
    }
    for (const [index, { port }] of forwards.entries())
      printForward(edge.boxName, listeners[index] as LocalListener, port, json)
    await ended.promise
  } finally {
    removeInterruptHandler()
    session.signal.removeEventListener('abort', onAbort)
    stop.abort()
    for (const listener of listeners) listener.close()
  }
}

function printForward(boxName: string, listener: LocalListener, port: number, json: boolean): void {
  const { addresses, port: localPort } = listener
  if (json) print(formatJson({ box: boxName, port, localPort, addresses }))
  else print(`localhost:${localPort} -> ${boxName}:${port}`)
}

type ServeOptions = {
  signal: AbortSignal
  /** Called when no further connection can succeed. */
  onRefused(error: CliError): void
}

function createServe(edge: EdgeClient, { port }: Forward, { signal, onRefused }: ServeOptions) {
  /** A browser opens several connections at once, and again: equal messages are printed once. */
  let lastMessage: string | null = null

  async function serve(socket: Socket): Promise<void> {
    const ws = await connectToBox(edge, port, { signal })
    lastMessage = null
    joinConnections(socket, new TcpOverWebSocket(ws))
  }

  return (socket: Socket): void => {
    // Without a listener, a reset before the connection to the box would be an uncaught exception.
    socket.on('error', () => undefined)
    serve(socket).catch((error: unknown) => {
      socket.resetAndDestroy()
      if (signal.aborted) return
      const cliError = toCliError(error)
      if (cliError.exitCode === EXIT.notAuthenticated || cliError.code === 'key_access_denied')
        return onRefused(cliError)
      if (cliError.message !== lastMessage) printMessage(`${edge.boxName}:${port}: ${cliError.message}`)
      lastMessage = cliError.message
    })
  }
}

const toCliError = (error: unknown): CliError =>
  error instanceof CliError
    ? error
    : new CliError(EXIT.failed, error instanceof Error ? error.message : String(error))
