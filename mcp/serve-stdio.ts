// Serves the tools over standard input and output.
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Boxwood } from '../client/boxwood.ts'
import { Context, type McpOptions } from './context.ts'
import { createServerFactory } from './server.ts'

export type StdioOptions = McpOptions & {
  /** Of this program. */
  version: string
  /** Ends the connection. */
  signal: AbortSignal
  onError: (error: Error) => void
}

/** Resolves when the connection has ended, and nothing that its calls have started runs unknown to the client. */
export async function serveOverStdio(
  boxwood: Boxwood,
  { version, signal, onError, ...options }: StdioOptions,
): Promise<void> {
  const context = new Context(boxwood, options)
  const transport = new StdioServerTransport()
  const closed = Promise.withResolvers<void>()
  const handle = serveStdio(createServerFactory(context, version), { transport, onerror: onError })
  const { onclose } = transport
  transport.onclose = () => {
    onclose?.()
    closed.resolve()
  }
  const close = () => void handle.close()
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  await closed.promise
  signal.removeEventListener('abort', close)
  await context.settle()
}
