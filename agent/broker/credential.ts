// The credential of the listener, which the URL of the proxy has. It keeps out the other boxes of the same user.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export const PROXY_USER = 'boxwood'

export const createCredential = (): string => randomBytes(24).toString('hex')

/** @param header Proxy-Authorization of the request */
export function isAuthorized(header: string | undefined, credential: string): boolean {
  const [, encoded = ''] = /^basic +([a-z0-9+/]+=*) *$/i.exec(header ?? '') ?? []
  return timingSafeEqual(hash(decode(encoded)), hash(`${PROXY_USER}:${credential}`))
}

const decode = (encoded: string): string => Buffer.from(encoded, 'base64').toString('latin1')
const hash = (text: string): Buffer => createHash('sha256').update(text).digest()
