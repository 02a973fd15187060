// The bridge of the boxes: they reach the internet through it, and not each other.
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineStatusError } from '../engine-http/errors.ts'
import { PermanentProviderError } from '../provider.ts'
import { type IncusClient, readReason } from './client.ts'
import { getNetworkName, LABELS } from './names.ts'
import type { Server } from './server.ts'

type Network = { config: Record<string, string>; status?: string }

/** An earlier coordinator may have been killed while Incus creates the network, which takes seconds on a busy machine. */
const CREATION = { attempts: 60, intervalMs: 500 }

/**
 * Ports of the bridge are isolated, so that boxes exchange no frames. The rules of the ACL refuse packets that the machine would
 * route back to the bridge.
 */
const createRules = (subnets: readonly string[]) => ({
  egress: subnets.map((destination) => ({ action: 'drop', destination, state: 'enabled' })),
})

/** Creates the network when it is missing, and returns its name. */
export async function ensureNetwork(
  client: IncusClient,
  server: Server,
  deploymentId: string,
  log: { warn(fields: object, message: string): void },
): Promise<string> {
  const name = getNetworkName(deploymentId)
  let network = await client.find<Network>(`/networks/${name}`)
  if (network === null) {
    await createNetwork(client, server, name, deploymentId)
    network = await client.get<Network>(`/networks/${name}`)
  }
  // Incus lists a network before it can be used. That of a cluster is pending until its creation is repeated.
  for (let attempt = 0; network.status === 'Pending'; attempt++) {
    if (attempt === CREATION.attempts) throw new Error(`Incus has not yet created the network ${name}.`)
    if (server.isClustered) await createNetwork(client, server, name, deploymentId)
    else await sleep(CREATION.intervalMs)
    network = await client.get<Network>(`/networks/${name}`)
  }
  if (network.config[LABELS.coordinator] !== deploymentId)
    throw new PermanentProviderError(
      `The network ${name} in Incus does not belong to this coordinator. Rename or remove it.`,
    )
  if (network.config['security.acls'] === undefined) {
    try {
      await addRules(client, name, network, deploymentId)
    } catch (err) {
      // Only the answer that the firewall of the machine has no support for them is a reason to continue without the rules.
      if (readReason(err) === '') throw err
      log.warn({ err }, 'boxes can send packets to each other through the router of their network')
    }
  }
  return name
}

async function createNetwork(client: IncusClient, server: Server, name: string, deploymentId: string) {
  const network = { name, type: 'bridge', description: 'The boxes of Boxwood' }
  const isPending = (error: unknown) => {
    // An earlier attempt was interrupted.
    if (!(error instanceof EngineStatusError && /already (defined|exists)/i.test(error.reason))) throw error
  }
  if (server.isClustered) {
    const members = await client.get<{ server_name: string }[]>('/cluster/members', { recursion: 1 })
    for (const { server_name: target } of members)
      await client.call('POST', '/networks', { query: { target }, json: network }).catch(isPending)
  }
  const config = {
    'ipv4.address': 'auto',
    'ipv4.nat': 'true',
    'ipv6.address': 'none',
    [LABELS.coordinator]: deploymentId,
  }
  await client.call('POST', '/networks', { json: { ...network, config } }).catch(isPending)
}

async function addRules(client: IncusClient, name: string, { config }: Network, deploymentId: string) {
  const address = config['ipv4.address']
  if (address === undefined || address === 'none') return
  const existing = await client.find<Network>(`/network-acls/${name}`)
  if (existing !== null && existing.config[LABELS.coordinator] !== deploymentId)
    throw new Error(`The network ACL ${name} in Incus does not belong to this coordinator.`)
  if (existing === null) {
    const description = 'Boxes do not reach each other'
    const json = {
      name,
      description,
      ...createRules([address]),
      config: { [LABELS.coordinator]: deploymentId },
    }
    await client.call('POST', '/network-acls', { json })
  }
  await client.call('PATCH', `/networks/${name}`, {
    json: {
      config: {
        'security.acls': name,
        'security.acls.default.egress.action': 'allow',
        'security.acls.default.ingress.action': 'drop',
      },
    },
  })
}
