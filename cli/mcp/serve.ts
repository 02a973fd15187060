// Serves the Model Context Protocol with the coordinator and the key of this command.
import type { Transport } from '../../client/http/transport.ts'
import { VERSION } from '../../shared/version.ts'
import { boxCommand } from '../command-name.ts'
import { type CoordinatorConfig, getRootUrl } from '../connection/find-coordinator.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'

export type ServeOptions = {
  readOnly?: boolean
  box?: string[]
  create: boolean
  allowDelete?: boolean
  allowPublic?: boolean
  maxWait?: number
}

/** Resolves when the host has disconnected. */
export async function serve(
  { coordinator, signal, onClosedPipe }: Session,
  options: ServeOptions,
): Promise<undefined> {
  const { key } = coordinator
  if (key === null)
    throw new CliError(
      EXIT.notAuthenticated,
      `${boxCommand()} mcp needs an API key, and your sign-in has none. Set BOXWOOD_API_KEY, or sign in again with \`${boxCommand()} login\`.`,
    )
  // Imported here: the modules take 100 ms, and other commands do not use them.
  const { Boxwood } = await import('../../client/boxwood.ts')
  const { fetchTransport } = await import('../../client/http/fetch-transport.ts')
  const { serveOverStdio } = await import('../../mcp/serve-stdio.ts')
  const boxwood = new Boxwood({
    url: getRootUrl(coordinator.baseUrl),
    apiKey: key,
    transport: createTransport(fetchTransport, coordinator),
  })
  const stop = new AbortController()
  const served = serveOverStdio(boxwood, {
    version: VERSION,
    signal: AbortSignal.any([signal, stop.signal]),
    onError: ({ message }) => printMessage(message),
    isReadOnly: options.readOnly ?? false,
    ...(options.box !== undefined && { boxes: options.box }),
    canCreate: options.create,
    canDelete: options.allowDelete ?? false,
    canSharePublicly: options.allowPublic ?? false,
    ...(options.maxWait !== undefined && { maxWaitMs: options.maxWait * 1000 }),
  })
  onClosedPipe(() => {
    stop.abort()
    return served
  })
  await served
}

/** The key of a data directory is sent to its own coordinator only. */
const createTransport = (transport: Transport, { assertRunning }: CoordinatorConfig): Transport => ({
  async send(request) {
    assertRunning?.()
    return transport.send(request)
  },
})
