// The edge's file routes (spec §4.15). Raw bodies use a dial-back connection.
import { z } from 'zod'
import {
  fileReadSchema,
  fileUploadedSchema,
  fileWrittenSchema,
  pathQuerySchema,
  uploadQuerySchema,
  writeFileRequestSchema,
} from '../../shared/api/files.ts'
import { LIMITS } from '../../shared/limits.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, acquireBox, boxParams } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { download } from './download.ts'
import { encodeQuery } from './encode-query.ts'
import { createReaderHeaders } from './reader-headers.ts'
import { forwardRequest } from './request-agent.ts'
import { upload } from './upload.ts'

const FILE_ERRORS = [
  ...ACQUIRE_ERRORS,
  'invalid_request',
  'invalid_path',
  'permission_denied',
  'payload_too_large',
] as const

const INVALID_PATH =
  'path is missing, has a NUL byte or a newline, or is a directory or another entry that is not a file. Or the path or the query of the URL is not percent-encoded UTF-8.'

/** 1 MiB of content, with room for JSON escapes. */
const WRITE_BODY_BYTES = 8 * LIMITS.inlineFileBytes

/** The time limit for a file of 1 MiB. */
const RESPONSE_TIMEOUT_MS = 60_000

const downloadRequestHeaders = z.object({
  Range: z.string().optional().meta({ description: 'one range of bytes, such as bytes=0-1023' }),
  'If-Range': z.string().optional(),
  'If-None-Match': z.string().optional(),
})
const downloadResponseHeaders = z.object({
  'X-Service-Path': z
    .string()
    .optional()
    .meta({
      header: { id: 'X-Service-Path' },
      description: 'the real path, percent-encoded where it is not printable ASCII',
    }),
  'X-Service-Content': z
    .literal('directory')
    .optional()
    .meta({
      header: { id: 'X-Service-Content' },
      description: 'on a directory, which is sent as application/x-tar',
    }),
  'X-Service-Mode': z
    .string()
    .optional()
    .meta({ header: { id: 'X-Service-Mode' }, description: 'the octal mode, such as 0644' }),
  'X-Service-Mtime': z
    .string()
    .optional()
    .meta({
      header: { id: 'X-Service-Mtime' },
      description: 'the modification time, in seconds since the epoch',
    }),
  'X-Service-Files': z
    .string()
    .optional()
    .meta({
      header: { id: 'X-Service-Files' },
      description: 'on a directory: the number of its files before the transfer',
    }),
  'X-Service-Bytes': z
    .string()
    .optional()
    .meta({ header: { id: 'X-Service-Bytes' }, description: 'on a directory: their size' }),
  'X-Service-Skipped': z
    .string()
    .optional()
    .meta({
      header: { id: 'X-Service-Skipped' },
      description: 'on a directory: FIFOs, sockets and devices, which the archive omits',
    }),
  'Content-Length': z.string().optional().meta({ description: 'on a file' }),
  'Content-Range': z.string().optional().meta({ description: 'on a range of a file' }),
  ETag: z.string().optional().meta({ description: 'on a file' }),
  'Content-Disposition': z.string().optional().meta({ description: 'attachment, with the name' }),
})

export function fileRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'files.read',
      method: 'GET',
      path: '/files',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Read a file of up to 1 MiB',
      request: { params: boxParams, query: pathQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: fileReadSchema },
      errors: FILE_ERRORS,
      errorDescriptions: {
        invalid_path: INVALID_PATH,
        payload_too_large: 'The file is larger than 1 MiB. Use GET /download.',
      },
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'GET',
          path: `/files?${encodeQuery(input.query)}`,
          headers: createReaderHeaders(input.actor),
          type: 'file.read',
          timeoutMs: RESPONSE_TIMEOUT_MS,
        }),
    }),
    route({
      id: 'files.write',
      method: 'PUT',
      path: '/files',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Write a file of up to 1 MiB, atomically',
      request: { params: boxParams, body: writeFileRequestSchema },
      fieldErrorCodes: { path: 'invalid_path' },
      bodyLimit: WRITE_BODY_BYTES,
      responses: { 200: fileWrittenSchema },
      errors: FILE_ERRORS,
      errorDescriptions: {
        invalid_path: INVALID_PATH,
        invalid_request: 'Another field is missing or not valid. The message names it.',
        payload_too_large: 'The content is larger than 1 MiB. Use PUT /upload.',
      },
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'PUT',
          path: '/files',
          body: JSON.stringify(input.body),
          type: 'file.written',
          timeoutMs: RESPONSE_TIMEOUT_MS,
        }),
    }),
    route({
      id: 'files.download',
      method: 'GET',
      path: '/download',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Download a file of up to 1 GiB, or a directory as a tar stream',
      description:
        'For a file, supports ETag with If-None-Match, and Range with one range and If-Range. A larger file can be ' +
        'downloaded in ranges of up to 1 GiB.',
      request: { params: boxParams, query: pathQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: null },
      contentTypes: ['application/octet-stream', 'application/x-tar'],
      requestHeaders: downloadRequestHeaders,
      responseHeaders: downloadResponseHeaders,
      otherStatuses: { 206: 'The requested range', 304: 'Not modified' },
      errors: [...FILE_ERRORS, 'range_not_satisfiable'],
      errorDescriptions: {
        payload_too_large:
          'The file is larger than 1 GiB, which only ranges can download, or the directory is.',
      },
      async handler(input) {
        const acquired = await acquireBox(context, input)
        return download(context.transfers, acquired, `/download?${encodeQuery(input.query)}`, input)
      },
    }),
    route({
      id: 'files.upload',
      method: 'PUT',
      path: '/upload',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Write a file of up to 1 GiB from the raw body, atomically',
      request: { params: boxParams, query: uploadQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      rawBody: true,
      responses: { 200: fileUploadedSchema },
      errors: FILE_ERRORS,
      errorDescriptions: {
        payload_too_large: 'The body is larger than 1 GiB. Split it into several uploads.',
      },
      async handler(input) {
        const acquired = await acquireBox(context, input)
        const path = `/upload?${encodeQuery(input.query)}`
        const response = await upload(context, acquired, path, input.request.raw)
        return input.reply.type('application/json; charset=utf-8').send(response)
      },
    }),
  ]
}
