// Selects the listening sockets that may get a connection to a loopback address, as the kernel does.
import { formatAddress, type ListeningSocket } from '../vitals/socket-table.ts'

export type LoopbackAddress = '127.0.0.1' | '::1'

const LOOPBACK4 = formatAddress(0x7f000001)
const ANY4 = formatAddress(0)
const LOOPBACK6 = formatAddress(0, 0, 0, 1)
const ANY6 = formatAddress(0, 0, 0, 0)
/** An IPv6 socket that is bound to an IPv4 address: ::ffff:127.0.0.1. */
const MAPPED_LOOPBACK = formatAddress(0, 0, 0xffff, 0x7f000001)
const MAPPED_ANY = formatAddress(0, 0, 0xffff, 0)

/**
 * A socket of exactly the address comes before one of all addresses. With SO_REUSEPORT several sockets have the same
 * address, and the kernel selects any of them. Empty: nothing listens.
 */
export function selectListeners(
  sockets: readonly ListeningSocket[],
  address: LoopbackAddress,
  port: number,
): ListeningSocket[] {
  const find = (table: ListeningSocket['table'], ...addresses: readonly string[]) =>
    sockets.filter(
      (socket) => socket.table === table && socket.port === port && addresses.includes(socket.address),
    )
  if (address === '::1') {
    const exact = find('tcp6', LOOPBACK6)
    return exact.length > 0 ? exact : find('tcp6', ANY6)
  }
  const exact = [...find('tcp', LOOPBACK4), ...find('tcp6', MAPPED_LOOPBACK)]
  if (exact.length > 0) return exact
  const any4 = [...find('tcp', ANY4), ...find('tcp6', MAPPED_ANY)]
  const any6 = find('tcp6', ANY6)
  if (any4.length === 0) return any6
  // The table does not show IPV6_V6ONLY. Beside a socket of all IPv4 addresses, a socket of all IPv6 addresses has this
  // option, unless both have SO_REUSEPORT, which requires the same user.
  return [...any4, ...any6.filter(({ uid }) => any4.some((socket) => socket.uid === uid))]
}
