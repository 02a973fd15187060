// How the agents in the boxes reach the coordinator.
import { join } from 'node:path'
import { AGENT_SOCKET_FILE } from '../../http/agent-socket.ts'
import { CONTAINER_PATHS } from '../container/paths.ts'
import { PermanentProviderError } from '../provider.ts'
import type { Server } from './server.ts'

export type AgentAccess = {
  /** The URL for the agents. */
  url: string
  /** The device of a box on the member, which makes the URL work; null: none is needed. Throws PermanentProviderError. */
  createDevice(server: Server, location: string): Record<string, string> | null
}

/** In the network of a box. Programs of boxes do not listen on this port. */
const PROXY_ADDRESS = '127.0.0.1:61'

/**
 * On the coordinator's machine, boxes have the directory of its socket. Elsewhere the member connects for them, so that a box needs
 * no network; with https, boxes connect by themselves.
 * @param agentSocketDir null: boxes can be on other machines
 */
export function createAgentAccess({
  agentSocketDir,
  coordinatorUrl,
}: {
  agentSocketDir: string | null
  coordinatorUrl: string
}): AgentAccess {
  if (agentSocketDir !== null)
    return {
      url: `unix:${join(CONTAINER_PATHS.socketDir, AGENT_SOCKET_FILE)}`,
      createDevice({ name }, location) {
        if (location !== name)
          throw new PermanentProviderError(
            `The box is on ${location}, where the socket of the coordinator does not exist. Set BOXWOOD_AGENT_URL to a URL of the coordinator that all members reach.`,
          )
        // A proxy would delay each start by a second. Each coordinator creates the socket in the directory again.
        return { type: 'disk', source: agentSocketDir, path: CONTAINER_PATHS.socketDir, readonly: 'true' }
      },
    }
  const { protocol, hostname, port } = new URL(coordinatorUrl)
  if (protocol === 'https:') return { url: coordinatorUrl, createDevice: () => null }
  const device = {
    type: 'proxy',
    bind: 'instance',
    listen: `tcp:${PROXY_ADDRESS}`,
    connect: `tcp:${hostname}:${port || '80'}`,
  }
  return { url: `http://${PROXY_ADDRESS}`, createDevice: () => device }
}
