// Resolves host names to IP addresses.
import { lookup, Resolver } from 'node:dns/promises'

/** Resolves a host name to IP addresses. The signal cancels it. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>

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

/** Resolves a name like other programs of the machine: private servers may be in /etc/hosts. */
export const resolveWithSystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address)
