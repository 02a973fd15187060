// The lookup function of connections to real hosts: they connect only to addresses that have been checked.
import { isIP, type LookupFunction } from 'node:net'
import type { Resolve } from '../../base/resolve-name.ts'
import { BrokerError } from './broker-error.ts'

const TIMEOUT_MS = 15_000

/**
 * The name is resolved once for each connection, and the connection uses this result: a name that resolves to another address
 * afterwards has no effect. One refused address is enough to refuse the name.
 */
export function createVettedLookup(
  resolve: Resolve,
  isAdmitted: (address: string) => boolean,
): LookupFunction {
  async function find(host: string): Promise<{ address: string; family: number }[]> {
    const addresses = await resolve(host, AbortSignal.timeout(TIMEOUT_MS)).catch(
      (cause: NodeJS.ErrnoException) => {
        throw new BrokerError(
          'upstream_unreachable',
          `The name ${host} cannot be resolved (${cause.code ?? 'unknown error'}).`,
        )
      },
    )
    if (addresses.length === 0)
      throw new BrokerError('upstream_unreachable', `The name ${host} has no address.`)
    if (!addresses.every(isAdmitted))
      throw new BrokerError(
        'address_refused',
        `The host ${host} has an address that is not on the public internet. The operator can admit it with BOXWOOD_SECRETS_PRIVATE.`,
      )
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
  return (host, options, callback) => {
    find(host).then(
      (found) => {
        if (options.all) callback(null, found)
        else callback(null, found[0]?.address ?? '', found[0]?.family)
      },
      (error: Error) => callback(error, ''),
    )
  }
}
