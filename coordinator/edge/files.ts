// The edge's file routes (spec §4.15): small bodies through the tunnel, large ones over a connection of their own.
import {
  fileRead,
  fileUploaded,
  fileWritten,
  pathQuery,
  uploadQuery,
  writeFileRequest,
} from '../../shared/api/files.ts'
import { LIMITS } from '../../shared/limits.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import type { EdgeContext } from './context.ts'
import { download } from './download.ts'
import { upload } from './upload.ts'

const FILE_ERRORS = [
  ...ACQUIRE_ERRORS,
  'invalid_request',
  'invalid_path',
  'permission_denied',
  'payload_too_large',
] as const

/** 1 MiB of content, however much JSON's escapes make of it. */
const WRITE_BODY_BYTES = 8 * LIMITS.inlineFileBytes

const query = (values: Record<string, string | undefined>) =>
  new URLSearchParams(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )

export function fileRoutes(context: EdgeContext): Route[] {
  return [
    route({
      method: 'GET',
      path: '/files',
      summary: 'Read a file of up to 1 MiB',
      request: { params: boxParams, query: pathQuery },
      codes: { path: 'invalid_path' },
      responses: { 200: fileRead },
      errors: FILE_ERRORS,
      async handle(input) {
        const { tunnel, signal } = await acquireBox(context, input)
        const response = await tunnel.request({ method: 'GET', path: `/files?${query(input.query)}`, signal })
        return input.reply
          .type('application/json; charset=utf-8')
          .send(await readAgentResponse(response, fileRead))
      },
    }),
    route({
      method: 'PUT',
      path: '/files',
      summary: 'Write a file of up to 1 MiB, whole or not at all',
      request: { params: boxParams, body: writeFileRequest },
      codes: { path: 'invalid_path' },
      bodyLimit: WRITE_BODY_BYTES,
      responses: { 200: fileWritten },
      errors: FILE_ERRORS,
      async handle(input) {
        const { tunnel, signal } = await acquireBox(context, input)
        const response = await tunnel.request({
          method: 'PUT',
          path: '/files',
          headers: { 'content-type': 'application/json' },
          body: Buffer.from(JSON.stringify(input.body)),
          signal,
        })
        return input.reply
          .type('application/json; charset=utf-8')
          .send(await readAgentResponse(response, fileWritten))
      },
    }),
    route({
      method: 'GET',
      path: '/download',
      summary: 'A file of up to 1 GiB as bytes, or a folder as a tar stream',
      request: { params: boxParams, query: pathQuery },
      codes: { path: 'invalid_path' },
      responses: { 200: null },
      errors: FILE_ERRORS,
      async handle(input) {
        const place = await acquireBox(context, input)
        return download(context.transfers, place, `/download?${query(input.query)}`, input.reply)
      },
    }),
    route({
      method: 'PUT',
      path: '/upload',
      summary: 'Write a file of up to 1 GiB from the raw body, whole or not at all',
      request: { params: boxParams, query: uploadQuery },
      codes: { path: 'invalid_path' },
      rawBody: true,
      responses: { 200: fileUploaded },
      errors: FILE_ERRORS,
      async handle(input) {
        const place = await acquireBox(context, input)
        const answer = await upload(
          context.transfers,
          place,
          `/upload?${query(input.query)}`,
          input.request.raw,
        )
        return input.reply.type('application/json; charset=utf-8').send(answer)
      },
    }),
  ]
}
