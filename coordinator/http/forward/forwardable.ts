// Which requests of clients can be forwarded.
import type { IncomingMessage } from 'node:http'
import { countHostHeaders } from '../fastify-app.ts'

/**
 * Whether the request can be forwarded so that the box reads the same message. Node's parser has refused requests with several
 * lengths.
 */
export function isForwardable(request: IncomingMessage): boolean {
  const encoding = request.headers['transfer-encoding']
  return (
    countHostHeaders(request) === 1 &&
    request.url?.startsWith('/') === true &&
    (encoding === undefined || /^\s*chunked\s*$/i.test(encoding))
  )
}

/** Upgrades to HTTP/2 are ignored, as clients expect of servers that do not have it. A body would not end before the upgrade. */
export const isForwardableUpgrade = ({ headers }: IncomingMessage): boolean =>
  !/^\s*h2c?\b/i.test(headers.upgrade ?? '') &&
  headers['transfer-encoding'] === undefined &&
  Number(headers['content-length'] ?? 0) === 0
