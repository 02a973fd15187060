// Authenticates agents by the headers of a tunnel or dial-back connection.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isUuid } from '../../../shared/ids.ts'
import { BOX_HEADER } from '../../../shared/protocol.ts'

/**
 * Resolves to true when the box exists and its token has this SHA-256 (hex). Comparing hashes leaks nothing about the token
 * through timing.
 */
export type Authenticate = (boxId: string, tokenHash: string) => Promise<boolean>

/** The message of the 401 response to an agent. */
export const WRONG_CREDENTIALS = `Unknown box id or wrong token. Check the headers ${BOX_HEADER} and Authorization.`

/** The id of the box whose token the request carries; null when the credentials are missing or wrong. */
export async function authenticateBox(
  request: IncomingMessage,
  authenticate: Authenticate,
): Promise<string | null> {
  const credentials = readCredentials(request)
  if (credentials === null) return null
  const { boxId, tokenHash } = credentials
  return (await authenticate(boxId, tokenHash)) ? boxId : null
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
