// The addresses of clients, for limits and for the audit log.
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { getForwarded } from './forwarded-requests.ts'

/** null: the client is connected to the socket for agents. */
export function getClientAddress({ ip, socket, raw }: FastifyRequest): string | null {
  const forwarded = getForwarded(raw)
  if (forwarded !== undefined) return forwarded.clientAddress
  // X-Forwarded-For may contain any text.
  const address = ipaddr.isValid(ip ?? '') ? ip : (socket.remoteAddress ?? '')
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : null
}

/**
 * The address of a client whose request Fastify does not serve; null as in getClientAddress().
 * @param isProxy see createProxyCheck()
 */
export function readClientAddress(
  request: IncomingMessage,
  isProxy: (address: string) => boolean,
): string | null {
  const fromPeer = getForwarded(request)
  if (fromPeer !== undefined) return fromPeer.clientAddress
  const { socket, headers } = request
  let address = socket.remoteAddress ?? null
  if (headers['x-forwarded-for'] === undefined) return address
  const forwarded = [headers['x-forwarded-for']].flat().join(',').split(',')
  for (const next of forwarded.map((text) => text.trim()).reverse()) {
    if (address === null || !isProxy(address) || !ipaddr.isValid(next)) break
    address = next
  }
  return address
}

/** A client usually has all IPv6 addresses of its /64 network. */
export function toSubject(address: string | null): string {
  if (address === null) return 'agent socket'
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

/**
 * The returned function returns whether the address is that of a proxy.
 * @param entries IP addresses and ranges
 */
export function createProxyCheck(entries: readonly string[]): (address: string) => boolean {
  const ranges = entries.map((entry) => {
    if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry)
    const address = ipaddr.process(entry)
    return [address, address.toByteArray().length * 8] as const
  })
  return (address) => {
    const parsed = ipaddr.process(address)
    return ranges.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match(range, bits))
  }
}
