// A small app with nothing but the file routes, on a socket of its own, over a home that goes away with the test.
import { readdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import { fileRoutes } from '../../../agent/files/routes.ts'
import type { TransferDialer } from '../../../agent/files/transfer.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError, edgeErrorBody } from '../../../shared/errors.ts'
import { tempFolder } from '../../support/temp-folder.ts'

type Test = { teardown(end: () => unknown): void }

const noTransfers: TransferDialer = {
  fetch: async () => {
    throw new Error('no transfers here')
  },
  bring: async () => {
    throw new Error('no transfers here')
  },
}

export type Served = { app: FastifyInstance; home: string; url: string; port: number }
type Options = { transfers?: TransferDialer; clock?: Clock; http2?: boolean }

export async function serveFiles(t: Test, options: Options = {}): Promise<Served> {
  const home = tempFolder(t, 'files')
  const app = (options.http2
    ? fastify({ http2: true })
    : fastify({ forceCloseConnections: true })) as unknown as FastifyInstance
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof ApiError) return reply.code(error.status).send(edgeErrorBody(error))
    return reply.code(500).send({ ok: false, error: { code: 'internal_error', message: String(error) } })
  })
  const transfers = options.transfers ?? noTransfers
  await fileRoutes(app, { home, log: app.log, transfers, ...(options.clock && { clock: options.clock }) })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  t.teardown(() => app.close())
  return { app, home, port, url: `http://127.0.0.1:${port}` }
}

/** The same outside of a test, with what ends it. */
export async function serveFilesAlone(): Promise<Served & { end(): Promise<void> }> {
  const atEnd = new AsyncDisposableStack()
  const served = await serveFiles({ teardown: (end) => atEnd.defer(async () => void (await end())) })
  return { ...served, end: () => atEnd.disposeAsync() }
}

/** What an error answer says. */
export async function errorOf(
  response: Response,
): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return { status: response.status, ...error }
}

export const query = (path: string): string => `?path=${encodeURIComponent(path)}`

/** Waits until `holds`, 10 seconds at the most. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('it did not come true within 10 seconds')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The folder holds these names and no leftover of a write. */
export const namesIn = async (folder: string): Promise<string[]> => (await readdir(folder)).sort()

/** A body that gives `chunks` and then whatever `end` does: nothing for ever, an error, its end. */
export async function* bodyOf(chunks: readonly Buffer[], end: () => Promise<void>) {
  yield* chunks
  await end()
}
