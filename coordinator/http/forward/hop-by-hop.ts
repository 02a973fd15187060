// Removes the headers that are for one connection only (RFC 9110, section 7.6.1).
import type { HeaderPair } from './raw-headers.ts'

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

/** A sender cannot remove these headers by listing them in Connection: the receiver's decisions depend on them. */
const PROTECTED = new Set([
  'host',
  'content-length',
  'expect',
  'authorization',
  'cookie',
  'set-cookie',
  'cache-control',
  'clear-site-data',
  'origin',
])

export function removeHopByHop(headers: readonly HeaderPair[]): HeaderPair[] {
  const tokens = headers
    .filter(([name]) => /^(?:proxy-)?connection$/i.test(name))
    .flatMap(([, value]) => value.split(','))
    .map((token) => token.trim().toLowerCase())
    .filter((token) => !PROTECTED.has(token))
  const listed = new Set(tokens)
  const isRemoved = (name: string) => HOP_BY_HOP.has(name) || listed.has(name)
  return headers.filter(([name]) => !isRemoved(name.toLowerCase()))
}

/** Headers that have no effect in trailers, or that must not be changed by them (RFC 9110, section 6.5.1). */
const NO_TRAILERS = new Set([
  ...HOP_BY_HOP,
  ...PROTECTED,
  'content-encoding',
  'content-range',
  'content-type',
  'forwarded',
  'trailer',
])

/** Returns the trailers that are forwarded. */
export const filterTrailers = (trailers: readonly HeaderPair[]): HeaderPair[] =>
  trailers.filter(
    ([name]) => !NO_TRAILERS.has(name.toLowerCase()) && !/^x-(?:forwarded-|real-ip$)/i.test(name),
  )
