// The header with which one coordinator proves to another that a request comes from it. Any other client's header of this name
// has no meaning.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { SecretValue } from '../base/sealing/secret-value.ts'

export const PEER_HEADER = 'x-boxwood-replica'

const peerClaimSchema = z.object({
  /** The ids of the coordinators. */
  from: z.string(),
  to: z.string(),
  /** The address of the client whose request is forwarded; null: it is connected to a Unix socket. Absent: a call. */
  client: z.string().nullable().optional(),
  /** The id of the box that a forwarded request is about. */
  box: z.string().optional(),
  /** SHA-256 of the body of a call, in hex. */
  digest: z.string().optional(),
})
export type PeerClaim = z.infer<typeof peerClaimSchema>

type RequestLine = { method: string; url: string }

/** What coordinators agree on: a key of the deployment, in hex. */
export type PeerKey = SecretValue

export const hashBody = (body: string | Buffer): string => createHash('sha256').update(body).digest('hex')

const computeMac = (key: PeerKey, { method, url }: RequestLine, claim: string): Buffer =>
  createHmac('sha256', Buffer.from(key.reveal(), 'hex')).update(`${method} ${url}\n${claim}`).digest()

/** Returns the value of the header. */
export function signClaim(key: PeerKey, line: RequestLine, claim: PeerClaim): string {
  const text = Buffer.from(JSON.stringify(claim)).toString('base64url')
  return `${text}.${computeMac(key, line, text).toString('base64url')}`
}

/** Returns null when the request does not come from a coordinator, or is meant for another one than `to`. */
export function verifyClaim(key: PeerKey, request: IncomingMessage, to: string): PeerClaim | null {
  const header = request.headers[PEER_HEADER]
  if (typeof header !== 'string') return null
  const [text = '', mac = '', ...rest] = header.split('.')
  const expected = computeMac(key, { method: request.method ?? '', url: request.url ?? '' }, text)
  const given = Buffer.from(mac, 'base64url')
  if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) return null
  const claim = peerClaimSchema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()))
  return claim.success && claim.data.to === to ? claim.data : null
}
