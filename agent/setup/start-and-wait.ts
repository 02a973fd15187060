// Starts the agent and waits until the coordinator has accepted its connection.
import { getRejection, readConnection, waitForConnection } from './connection.ts'
import type { Layout } from './layout.ts'
import { findSupervisors } from './processes.ts'
import type { Service } from './services/service.ts'
import { SetupError } from './setup-error.ts'

const CONNECT_TIMEOUT_MS = 60_000

/** @throws SetupError when the coordinator refuses the agent, or when the agent does not connect */
export async function startAndWait(
  service: Service,
  layout: Layout,
  { url, signal }: { url: string; signal: AbortSignal },
): Promise<void> {
  const isRunning = findSupervisors(layout.prefix).length > 0
  const isConnected = (await readConnection(layout.stateDir))?.connected === true
  if (isRunning && isConnected) return
  const since = Date.now()
  await service.start()
  const connection = await waitForConnection(
    layout.stateDir,
    since,
    AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]),
  )
  signal.throwIfAborted()
  if (connection?.connected) return
  const rejection = getRejection(connection)
  if (rejection !== null) throw new SetupError(rejection)
  const reason = connection === null ? 'it does not start' : (connection.message ?? connection.reason)
  throw new SetupError(
    `The agent did not connect to ${url} within ${CONNECT_TIMEOUT_MS / 1000} seconds: ${reason}. Check that a proxy in between forwards WebSockets.`,
  )
}
