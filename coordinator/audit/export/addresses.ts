// Decides to which addresses events are delivered: the owner of a workspace must not reach the network of the coordinator.
import { isIP } from 'node:net'
import { isPublicAddress } from '../../base/public-address.ts'
import type { Resolve } from '../../base/resolve-name.ts'

/** Its message is meant for the owner of the workspace, and has no address of a name. */
export class AddressError extends Error {
  override name = 'AddressError'
}

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
