// Decides to which addresses events are delivered: the owner of a workspace must not reach the network of the coordinator.
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Resolves a host name to IP addresses. The signal cancels it. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>

/** Its message is meant for the owner of the workspace, and has no address of a name. */
export class AddressError extends Error {
  override name = 'AddressError'
}

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

/** Resolves a name without a thread of the pool, which slow name servers would occupy. Ignores /etc/hosts. */
export async function resolveWithDns(hostname: string, signal: AbortSignal): Promise<string[]> {
  const resolver = new Resolver({ timeout: 5_000, tries: 2 })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const results = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    if (addresses.length === 0 && results[0].status === 'rejected') throw results[0].reason
    return addresses
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Resolves a name like other programs of the machine: private collectors may be in /etc/hosts. */
export const resolveWithSystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address)

/**
 * The addresses of the host of a URL.
 * @throws AddressError when the name cannot be resolved, and when an address is not public and `allowsPrivate` is false
 */
export async function findAddresses(
  { hostname: host }: Pick<URL, 'hostname'>,
  { allowsPrivate, resolve }: { allowsPrivate: boolean; resolve: Resolve },
  signal: AbortSignal,
): Promise<string[]> {
  const hostname = host.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(hostname) ? [hostname] : await resolve(hostname, signal).catch(throwUnresolved)
  if (!allowsPrivate && !addresses.every(isPublicAddress))
    throw new AddressError(
      `The host ${hostname} has an address that is not public. Use an endpoint on the public internet, or ask the operator to set BOXWOOD_AUDIT_SINK_PRIVATE=on.`,
    )
  return addresses

  function throwUnresolved(error: NodeJS.ErrnoException): never {
    throw new AddressError(
      `The name ${hostname} cannot be resolved (${error.code ?? error.message}). Check the host of the URL.`,
      { cause: error },
    )
  }
}
