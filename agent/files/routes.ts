// The agent's file routes (spec §4.15): small files as JSON, large files and directories as streams; and directories, which
// the spec does not have.
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { systemClock } from '../../shared/clock.ts'
import { READER_HEADER } from '../../shared/protocol.ts'
import { addJsonRoute } from '../requests/json-routes.ts'
import { makeDirectory, moveEntry, removeEntry } from './change.ts'
import type { FileDeps } from './deps.ts'
import { download } from './download.ts'
import { createOwnerNames } from './entry.ts'
import { toFileError } from './errors.ts'
import { readInlineFile, writeInlineFile } from './inline.ts'
import { listDirectory, statEntry } from './list.ts'
import type { ReadLimits } from './read.ts'
import { createTempFileSweeper } from './temp-file.ts'
import { upload } from './upload.ts'

/** 1 MiB of content in JSON, where each byte may need a six-byte escape, plus the other fields. */
const WRITE_BODY_BYTES = 8 * 1024 * 1024

/** Registers the routes. Handlers throw ApiError; the app's error handler serialises it. */
export async function fileRoutes(app: FastifyInstance, deps: FileDeps): Promise<void> {
  const writeDeps = { ...deps, sweepTempFiles: createTempFileSweeper(deps.clock ?? systemClock) }
  const serve = <T>(input: unknown, work: () => Promise<T>): Promise<T> => {
    deps.activity.touch()
    return withRequestPath(input, work)
  }
  const findLimits = async (headers: IncomingHttpHeaders): Promise<ReadLimits> => ({
    stateDir: deps.stateDir,
    credentials: headers[READER_HEADER] === undefined ? null : await deps.credentialFiles.find(),
  })
  addJsonRoute(app, 'GET', '/files', ({ query, headers }) =>
    serve(query, async () => readInlineFile(query, deps.home, await findLimits(headers))),
  )
  addJsonRoute(app, 'PUT', '/files', ({ body }) => serve(body, () => writeInlineFile(body, writeDeps)), {
    bodyLimit: WRITE_BODY_BYTES,
  })
  const listDeps = { ...deps, readOwnerNames: createOwnerNames() }
  addJsonRoute(app, 'GET', '/files/list', ({ query, headers, signal }) =>
    serve(query, async () =>
      listDirectory(query, { ...listDeps, limits: await findLimits(headers) }, signal),
    ),
  )
  addJsonRoute(app, 'GET', '/files/stat', ({ query, headers }) =>
    serve(query, async () => statEntry(query, { ...listDeps, limits: await findLimits(headers) })),
  )
  addJsonRoute(app, 'POST', '/files/mkdir', ({ body }) => serve(body, () => makeDirectory(body, deps)))
  addJsonRoute(app, 'POST', '/files/move', ({ body }) => serve(body, () => moveEntry(body, deps)))
  addJsonRoute(app, 'DELETE', '/files', ({ query, signal }) =>
    serve(query, () => removeEntry(query, deps, signal)),
  )
  app.route({
    method: ['GET', 'HEAD'],
    url: '/download',
    handler: (request, reply) =>
      serve(request.query, async () => download(request, reply, deps, await findLimits(request.headers))),
  })
  await app.register(async (scope) => {
    // Accept every content type unparsed: the handler reads the body from the raw request.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.put('/upload', (request) => serve(request.query, () => upload(request, writeDeps)))
  })
}

/** Converts system errors to ApiErrors that name the path as the caller sent it. */
async function withRequestPath<T>(input: unknown, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { path, from } = (typeof input === 'object' && input !== null ? input : {}) as Record<
      string,
      unknown
    >
    throw toFileError(error, String(path ?? from ?? ''))
  }
}
