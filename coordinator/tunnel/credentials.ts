// Who an agent's request says it is: the headers of a tunnel and of a transfer.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isUuid } from '../../shared/ids.ts'
import { BOX_HEADER } from '../../shared/protocol.ts'

/** Whether a box of this id exists whose token has this SHA-256 (hex). Comparing hashes leaks no token by time. */
export type Authenticate = (boxId: string, tokenHash: string) => Promise<boolean>

/** The box whose token the request carries, else null. */
export async function authenticatedBox(
  request: IncomingMessage,
  authenticate: Authenticate,
): Promise<string | null> {
  const boxId = headerValue(request, BOX_HEADER)
  const token = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(request.headers.authorization ?? '')?.[1]
  if (boxId === undefined || !isUuid(boxId) || token === undefined) return null
  const hash = createHash('sha256').update(token).digest('hex')
  return (await authenticate(boxId, hash)) ? boxId : null
}

export function headerValue(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}
