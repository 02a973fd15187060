// The edge's routes that list and change directories. The spec does not have them.
import {
  directoryCreatedSchema,
  fileListSchema,
  fileMovedSchema,
  fileRemovedSchema,
  fileStatSchema,
  listFilesQuerySchema,
  makeDirectoryRequestSchema,
  moveFileRequestSchema,
  pathQuerySchema,
  removeFileQuerySchema,
} from '../../shared/api/files.ts'
import { byKey } from '../http/access.ts'
import { type Route, route } from '../http/route.ts'
import { ACQUIRE_ERRORS, boxParams } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { encodeQuery } from './encode-query.ts'
import { createReaderHeaders } from './reader-headers.ts'
import { forwardRequest } from './request-agent.ts'

const DIRECTORY_ERRORS = [...ACQUIRE_ERRORS, 'invalid_request', 'invalid_path', 'permission_denied'] as const

/** The time limit for a directory of a million entries. */
const LIST_TIMEOUT_MS = 60_000
/** The time limit for the removal of a large tree. What is left then can be removed by another request. */
const REMOVE_TIMEOUT_MS = 10 * 60_000

const PROTECTED = 'The box user may not read or change the path, or it belongs to the agent of the box.'

export function directoryRoutes(context: EdgeContext): Route[] {
  return [
    route({
      id: 'files.list',
      method: 'GET',
      path: '/files/list',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'List a directory',
      description:
        'The entries are in the order of the bytes of their names. cursor continues after the last entry of a page; entries ' +
        'that are created or removed meanwhile do not move others to another page. A symbolic link to a directory is ' +
        'followed.',
      request: { params: boxParams, query: listFilesQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: fileListSchema },
      errors: DIRECTORY_ERRORS,
      errorDescriptions: {
        invalid_path:
          'path is missing, has a NUL byte or a newline, or is not a directory. Or the path or the query of the URL is not percent-encoded UTF-8.',
        permission_denied: PROTECTED,
      },
      handler({ query, ...input }) {
        const { path, cursor, limit } = query
        const search = encodeQuery({ path, cursor, limit: limit?.toString() })
        return forwardRequest(
          context,
          { query, ...input },
          {
            method: 'GET',
            path: `/files/list?${search}`,
            headers: createReaderHeaders(input.actor),
            type: 'file.list',
            timeoutMs: LIST_TIMEOUT_MS,
          },
        )
      },
    }),
    route({
      id: 'files.stat',
      method: 'GET',
      path: '/files/stat',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Get the type, the size and the other attributes of a file',
      description:
        'A symbolic link at the end of the path is not followed: the response has its target. A path that ends in / is that ' +
        'of a directory.',
      request: { params: boxParams, query: pathQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: fileStatSchema },
      errors: DIRECTORY_ERRORS,
      errorDescriptions: { permission_denied: PROTECTED },
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'GET',
          path: `/files/stat?${encodeQuery(input.query)}`,
          headers: createReaderHeaders(input.actor),
          type: 'file.stat',
        }),
    }),
    route({
      id: 'files.makeDirectory',
      method: 'POST',
      path: '/files/mkdir',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Create a directory',
      request: { params: boxParams, body: makeDirectoryRequestSchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: directoryCreatedSchema },
      errors: [...DIRECTORY_ERRORS, 'path_exists'],
      errorDescriptions: {
        path_exists: 'The path exists. With parents: it is not a directory.',
        permission_denied: PROTECTED,
      },
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'POST',
          path: '/files/mkdir',
          body: JSON.stringify(input.body),
          type: 'directory.created',
        }),
    }),
    route({
      id: 'files.move',
      method: 'POST',
      path: '/files/move',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Move or rename a file or a directory',
      description:
        'Both paths are those of the entry itself: it is not moved into a directory that to names. A symbolic link is moved, ' +
        'not its target. The move is atomic, so it is refused between file systems.',
      request: { params: boxParams, body: moveFileRequestSchema },
      fieldErrorCodes: { from: 'invalid_path', to: 'invalid_path' },
      responses: { 200: fileMovedSchema },
      errors: [...DIRECTORY_ERRORS, 'path_exists', 'directory_not_empty'],
      errorDescriptions: {
        invalid_path:
          'A path is missing, has a NUL byte or a newline, or no name at its end. Or a directory would be moved into itself, or to another file system.',
        path_exists:
          'to exists, and overwrite is not true; or only one of both is a directory. Choose another path, or remove it first.',
        directory_not_empty: 'overwrite: the directory to is not empty.',
        permission_denied: `${PROTECTED} Nor can the home directory be moved, and the directories that contain it.`,
      },
      handler: (input) =>
        forwardRequest(context, input, {
          method: 'POST',
          path: '/files/move',
          body: JSON.stringify(input.body),
          type: 'file.moved',
        }),
    }),
    route({
      id: 'files.remove',
      method: 'DELETE',
      path: '/files',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Remove a file or a directory',
      description:
        'No symbolic link is followed: the link is removed. A recursive removal ends when the client disconnects, and after ' +
        'ten minutes at the latest; the same request then removes the rest.',
      request: { params: boxParams, query: removeFileQuerySchema },
      fieldErrorCodes: { path: 'invalid_path' },
      responses: { 200: fileRemovedSchema },
      errors: [...DIRECTORY_ERRORS, 'directory_not_empty'],
      errorDescriptions: {
        directory_not_empty:
          'The directory is not empty, and recursive is not 1; or a program creates files in it during the removal.',
        permission_denied: `${PROTECTED} Nor can the home directory be removed, and the directories that contain it.`,
      },
      handler({ query, ...input }) {
        const { path, recursive } = query
        const search = encodeQuery({ path, ...(recursive === true && { recursive: '1' }) })
        return forwardRequest(
          context,
          { query, ...input },
          { method: 'DELETE', path: `/files?${search}`, type: 'file.removed', timeoutMs: REMOVE_TIMEOUT_MS },
        )
      },
    }),
  ]
}
