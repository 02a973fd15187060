// Which IP addresses are on the public internet. Users must not reach the network of the coordinator with a URL or a host name.
import ipaddr from 'ipaddr.js'

const GLOBAL_UNICAST_V6 = ipaddr.parseCIDR('2000::/3')

/** Whether a literal IPv4 or IPv6 address is on the public internet, also one that is embedded in an IPv6 address. */
export function isPublicAddress(text: string): boolean {
  const address = decodeEmbedded(ipaddr.parse(text))
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST_V6)
}

/** The IPv6 addresses that stand for an IPv4 address: IPv4-mapped, and NAT64. */
const EMBEDDING = ['::ffff:0:0/96', '64:ff9b::/96'].map((prefix) => ipaddr.parseCIDR(prefix))

function decodeEmbedded(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address.kind() === 'ipv4' || !EMBEDDING.some((prefix) => address.match(prefix))) return address
  return ipaddr.fromByteArray(address.toByteArray().slice(-4))
}

/**
 * Returns whether an address is public or in one of the ranges.
 * @param ranges addresses and ranges in CIDR notation
 */
export function createAddressFilter(ranges: readonly string[]): (text: string) => boolean {
  const admitted = ranges.map((range) =>
    range.includes('/')
      ? ipaddr.parseCIDR(range)
      : ipaddr.parseCIDR(`${range}/${range.includes(':') ? 128 : 32}`),
  )
  return (text) => {
    const address = decodeEmbedded(ipaddr.parse(text))
    return (
      isPublicAddress(text) ||
      admitted.some((range) => range[0].kind() === address.kind() && address.match(range))
    )
  }
}
