// The agent's file routes (spec §4.15): small files as JSON, others and archives over dial-back connections; and directories, which
// the spec does not have.
import type { IncomingHttpHeaders } from 'node:http'
import { systemClock } from '../../shared/clock.ts'
import { READER_HEADER } from '../../shared/protocol.ts'
import type { JsonRouter } from '../requests/json-routes.ts'
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

/** Registers the routes. Handlers throw ApiError. */
export function fileRoutes(router: JsonRouter, deps: FileDeps): void {
  const writeDeps = { ...deps, sweepTempFiles: createTempFileSweeper(deps.clock ?? systemClock) }
  const serve = <T>(input: unknown, work: () => Promise<T>): Promise<T> => {
    deps.activity.touch()
    return withRequestPath(input, work)
  }
  const findLimits = async (headers: IncomingHttpHeaders): Promise<ReadLimits> => ({
    stateDir: deps.stateDir,
    credentials: headers[READER_HEADER] === undefined ? null : await deps.credentialFiles.find(),
  })
  router.add('GET', '/files', ({ query, headers }) =>
    serve(query, async () => readInlineFile(query, deps.home, await findLimits(headers))),
  )
  router.add('PUT', '/files', ({ body }) => serve(body, () => writeInlineFile(body, writeDeps)))
  const listDeps = { ...deps, readOwnerNames: createOwnerNames() }
  router.add('GET', '/files/list', ({ query, headers, signal }) =>
    serve(query, async () =>
      listDirectory(query, { ...listDeps, limits: await findLimits(headers) }, signal),
    ),
  )
  router.add('GET', '/files/stat', ({ query, headers }) =>
    serve(query, async () => statEntry(query, { ...listDeps, limits: await findLimits(headers) })),
  )
  router.add('POST', '/files/mkdir', ({ body }) => serve(body, () => makeDirectory(body, deps)))
  router.add('POST', '/files/move', ({ body }) => serve(body, () => moveEntry(body, deps)))
  router.add('DELETE', '/files', ({ query, signal }) => serve(query, () => removeEntry(query, deps, signal)))
  router.add('GET', '/download', (request) =>
    serve(request.query, async () => download(request, deps, await findLimits(request.headers))),
  )
  router.add('PUT', '/upload', (request) => serve(request.query, () => upload(request, writeDeps)))
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
