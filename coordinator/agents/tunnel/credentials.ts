// Authenticates agents by the headers of a tunnel or dial-back connection.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { BOX_HEADER } from '../../../shared/protocol.ts'
import { isUuid } from '../../../shared/uuid.ts'

/**
 * Resolves to the id of the box's workspace when the box exists and its token has this SHA-256 (hex), else to null. Comparing
 * hashes leaks nothing about the token through timing.
 */
export type Authenticate = (boxId: string, tokenHash: string) => Promise<string | null>

/** The box whose token a connection has presented. */
export type AuthenticatedBox = { boxId: string; workspaceId: string }

/**
 * Called with the socket of an accepted agent. A box has one tunnel, and many other connections.
 * @throws ApiError rate_limited when the box or its workspace has too many connections
 */
export type OnAuthenticated = (socket: Duplex, box: AuthenticatedBox, use: 'tunnel' | 'other') => void

/** The message of the 401 response to an agent. */
export const WRONG_CREDENTIALS = `Unknown box id or wrong token. Check the headers ${BOX_HEADER} and Authorization.`

/** The box whose token the request carries; null when the credentials are missing or wrong. */
export async function authenticateBox(
  request: IncomingMessage,
  authenticate: Authenticate,
): Promise<AuthenticatedBox | null> {
  const credentials = readCredentials(request)
  if (credentials === null) return null
  const { boxId, tokenHash } = credentials
  const workspaceId = await authenticate(boxId, tokenHash)
  return workspaceId === null ? null : { boxId, workspaceId }
}

/** The box id and the SHA-256 (hex) of the token, unchecked; null: they are missing or malformed. */
export function readCredentials(request: IncomingMessage): { boxId: string; tokenHash: string } | null {
  const boxId = headerValue(request, BOX_HEADER)
  const token = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(request.headers.authorization ?? '')?.[1]
  if (boxId === undefined || !isUuid(boxId) || token === undefined) return null
  return { boxId, tokenHash: createHash('sha256').update(token).digest('hex') }
}

export function headerValue(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}
