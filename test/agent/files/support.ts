// Serves only the file routes over HTTP, with a temporary home directory.
import { readdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fastify, { type FastifyInstance } from 'fastify'
import { CredentialFiles } from '../../../agent/files/credential-files.ts'
import type { ReadLimits } from '../../../agent/files/read.ts'
import { fileRoutes } from '../../../agent/files/routes.ts'
import type { TransferDialer } from '../../../agent/files/transfer-dialer.ts'
import { createJsonRouter } from '../../../agent/requests/json-routes.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError, edgeErrorBody } from '../../../shared/errors.ts'
import { createTempDir } from '../../support/temp-dir.ts'

type Test = { teardown(fn: () => unknown): void }

const noTransfers: TransferDialer = {
  fetch: async () => {
    throw new Error('transfers are not available in this test')
  },
  send: async () => {
    throw new Error('transfers are not available in this test')
  },
}

/** Of a client that may run commands. */
export const NO_LIMITS: ReadLimits = { stateDir: '/nonexistent', credentials: null }

export type FileServer = {
  app: FastifyInstance
  home: string
  stateDir: string
  url: string
  port: number
  credentialFiles: CredentialFiles
}
type Options = {
  transferDialer?: TransferDialer
  clock?: Clock
  http2?: boolean
  activity?: { touch(): void }
}

export async function serveFiles(t: Test, options: Options = {}): Promise<FileServer> {
  const home = createTempDir(t, 'files')
  const stateDir = join(home, '.state')
  const credentialFiles = new CredentialFiles(home)
  const app = (options.http2
    ? fastify({ http2: true })
    : fastify({ forceCloseConnections: true })) as unknown as FastifyInstance
  app.decorate('jsonRouter', createJsonRouter())
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof ApiError)
      return reply.code(error.status).headers(error.headers).send(edgeErrorBody(error))
    return reply.code(500).send({ ok: false, error: { code: 'internal_error', message: String(error) } })
  })
  const transferDialer = options.transferDialer ?? noTransfers
  await fileRoutes(app, {
    home,
    stateDir,
    credentialFiles,
    log: app.log,
    transferDialer,
    activity: options.activity ?? { touch: () => undefined },
    ...(options.clock && { clock: options.clock }),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  t.teardown(() => app.close())
  return { app, home, stateDir, credentialFiles, port, url: `http://127.0.0.1:${port}` }
}

/** serveFiles for a process that is not a tap test. `close` stops the server and removes the home directory. */
export async function serveFilesStandalone(): Promise<FileServer & { close(): Promise<void> }> {
  const cleanup = new AsyncDisposableStack()
  const server = await serveFiles({ teardown: (fn) => cleanup.defer(async () => void (await fn())) })
  return { ...server, close: () => cleanup.disposeAsync() }
}

/** The status, code and message of an error response. */
export async function readError(
  response: Response,
): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return { status: response.status, ...error }
}

export const query = (path: string): string => `?path=${encodeURIComponent(path)}`

export const listNames = async (dir: string): Promise<string[]> => (await readdir(dir)).sort()

/** A body that yields `chunks` and then awaits `onEnd`, which may resolve, reject or stay pending. */
export async function* createBody(chunks: readonly Buffer[], onEnd: () => Promise<void>) {
  yield* chunks
  await onEnd()
}
