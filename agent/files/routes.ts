// The agent's file routes (spec §4.15): read and write small files as JSON, move large ones and folders as streams.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { download } from './download.ts'
import { fileError } from './errors.ts'
import { readFile, writeSmallFile } from './inline.ts'
import { leftoverSweeper } from './staging.ts'
import type { TransferDialer } from './transfer.ts'
import { upload } from './upload.ts'

export type FileDeps = {
  /** Where relative paths begin; absolute. */
  home: string
  log: FastifyBaseLogger
  transfers: TransferDialer
  clock?: Clock
}

/** JSON around 1 MiB of content whose every byte may need a six-byte escape. */
const WRITE_BODY_BYTES = 8 * 1024 * 1024

/** Mounts the routes. They throw ApiError; the app's error handler serialises it. */
export async function fileRoutes(app: FastifyInstance, deps: FileDeps): Promise<void> {
  const writes = { ...deps, sweep: leftoverSweeper(deps.clock ?? systemClock) }
  // A HEAD made from these GETs would read the whole file to throw it away.
  const noHead = { exposeHeadRoute: false }

  app.get('/files', noHead, (request) => named(request.query, () => readFile(request.query, deps)))
  app.put('/files', { bodyLimit: WRITE_BODY_BYTES }, (request) =>
    named(request.body, () => writeSmallFile(request.body, writes)),
  )
  app.get('/download', noHead, (request, reply) => named(request.query, () => download(request, reply, deps)))
  await app.register(async (scope) => {
    // The bytes are whatever they are: no content type is parsed, the handler reads the request itself.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.put('/upload', (request) => named(request.query, () => upload(request, writes)))
  })
}

/** Gives what the system says about a path the path that the caller sent. */
async function named<T>(input: unknown, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const path = typeof input === 'object' && input !== null && 'path' in input ? String(input.path) : ''
    throw fileError(error, path)
  }
}
