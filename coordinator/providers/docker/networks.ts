// The network of each box: a bridge of its own, with a small subnet from the configured ranges.
import ipaddr from 'ipaddr.js'
import pLimit from 'p-limit'
import { hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import type { Engine } from './engine.ts'
import { createLabels, filterByLabels, getContainerName, getNetworkName } from './names.ts'

/** 8 addresses: the network, the gateway, the box and the broadcast address are used. */
const PREFIX_LENGTH = 29
const SUBNET_SIZE = 2 ** (32 - PREFIX_LENGTH)

type Network = {
  Name: string
  IPAM?: { Config?: { Subnet?: string }[] | null } | null
}

export class Networks {
  readonly #engine: Engine
  readonly #ranges: readonly string[]
  /** Two concurrent creations would choose the same subnet. */
  readonly #oneAtATime = pLimit(1)

  constructor(engine: Engine, ranges: readonly string[]) {
    this.#engine = engine
    this.#ranges = ranges
  }

  /** Creates the network of the box unless it exists. */
  async ensure(boxId: string): Promise<void> {
    if (!(await this.#exists(boxId))) await this.#oneAtATime(() => this.#create(boxId))
  }

  /** Connects the stopped container of the box to the network, which was created again. */
  async reconnect(boxId: string): Promise<void> {
    await this.#engine.http.json({
      method: 'POST',
      path: `/networks/${getNetworkName(boxId)}/connect`,
      json: { Container: getContainerName(boxId) },
    })
  }

  /** No-op when absent. */
  async remove(boxId: string): Promise<void> {
    if (!(await this.#exists(boxId))) return
    const path = `/networks/${getNetworkName(boxId)}`
    await this.#engine.http.json({ method: 'DELETE', path }).catch(ignoreStatus(404))
  }

  /** Podman answers a request for one network with 404 when it cannot read its networks, and the request for the list with 500. */
  async #exists(boxId: string): Promise<boolean> {
    const { http, deploymentId } = this.#engine
    const networks = await http.json<Network[]>({
      method: 'GET',
      path: '/networks',
      query: { filters: filterByLabels(createLabels(deploymentId, 'machine', { boxId })) },
    })
    return networks.some(({ Name }) => Name === getNetworkName(boxId))
  }

  async #create(boxId: string): Promise<void> {
    const { http, kind, deploymentId } = this.#engine
    const networks = await http.json<Network[]>({ method: 'GET', path: '/networks' })
    const used = networks.flatMap(({ IPAM }) => (IPAM?.Config ?? []).flatMap(({ Subnet }) => Subnet ?? []))
    let problem: unknown
    // No engine knows the networks of the other one, which may run on the same machine.
    const order = kind === 'docker' ? 'ascending' : 'descending'
    for (const subnet of listFreeSubnets(this.#ranges, used, order)) {
      try {
        await http.json({
          method: 'POST',
          path: '/networks/create',
          json: {
            Name: getNetworkName(boxId),
            CheckDuplicate: true,
            Driver: 'bridge',
            // Without the gateway, Docker 20.10 never starts again when it was killed while it removed a network.
            IPAM: { Config: [{ Subnet: subnet, Gateway: getGateway(subnet) }] },
            Labels: createLabels(deploymentId, 'machine', { boxId }),
            // Docker isolates its networks from each other by default.
            ...(kind === 'podman' && { Options: { isolate: 'true' } }),
          },
        })
        return
      } catch (error) {
        // An address of the machine, or a network that another program has created meanwhile, is in the subnet.
        if (!isOverlap(error)) throw error
        problem = error
      }
    }
    throw new Error(
      `All subnets in ${this.#ranges.join(', ')} are used. Add a range to BOXWOOD_DOCKER_SUBNETS and restart the coordinator.`,
      { cause: problem },
    )
  }
}

const isOverlap = (error: unknown): boolean =>
  hasStatus(error, 400, 403, 409, 500) && /overlap|already (being )?used|conflict/i.test(error.reason)

/** Yields the subnets of the ranges that no used subnet overlaps. All are IPv4, in CIDR notation; others are ignored. */
export function* listFreeSubnets(
  ranges: readonly string[],
  used: readonly string[],
  order: 'ascending' | 'descending' = 'ascending',
): Generator<string> {
  const isDescending = order === 'descending'
  const parse = (text: string) => {
    const parsed = parseRange(text)
    return parsed !== null && isDescending ? mirror(parsed) : parsed
  }
  const taken = used.flatMap((subnet) => parse(subnet) ?? [])
  for (const range of ranges) {
    const parsed = parse(range)
    if (parsed === null) continue
    for (let first = parsed.first; first + SUBNET_SIZE - 1 <= parsed.last; ) {
      const last = first + SUBNET_SIZE - 1
      const overlap = taken.find((other) => other.first <= last && first <= other.last)
      if (overlap === undefined) {
        yield `${formatAddress(isDescending ? MAX_ADDRESS - last : first)}/${PREFIX_LENGTH}`
        first += SUBNET_SIZE
      } else {
        // The next multiple of the size after the used subnet.
        first += Math.max(1, Math.ceil((overlap.last + 1 - first) / SUBNET_SIZE)) * SUBNET_SIZE
      }
    }
  }
}

const MAX_ADDRESS = 2 ** 32 - 1

type Range = { first: number; last: number }

/** The order of mirrored addresses is that of the addresses from the last to the first. */
const mirror = ({ first, last }: Range): Range => ({ first: MAX_ADDRESS - last, last: MAX_ADDRESS - first })

/** The first and last address as numbers; null: no IPv4 range. */
function parseRange(text: string): Range | null {
  if (!ipaddr.IPv4.isValidCIDR(text)) return null
  const first = toNumber(ipaddr.IPv4.networkAddressFromCIDR(text))
  return { first, last: toNumber(ipaddr.IPv4.broadcastAddressFromCIDR(text)) }
}

/** The first address after that of the network, as engines choose it. */
const getGateway = (subnet: string): string =>
  formatAddress(toNumber(ipaddr.IPv4.networkAddressFromCIDR(subnet)) + 1)

const toNumber = (address: ipaddr.IPv4): number =>
  address.octets.reduce((value, octet) => value * 256 + octet, 0)

const formatAddress = (value: number): string =>
  [24, 16, 8, 0].map((bits) => Math.floor(value / 2 ** bits) % 256).join('.')
