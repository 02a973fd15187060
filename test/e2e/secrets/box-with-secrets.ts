// A coordinator whose broker connects to the servers of tool-servers.ts, and boxes with mounted secrets.

import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { startTestCoordinator, type TestCoordinator } from '../../support/coordinator.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from '../coordinator-with-box.ts'
import type { ToolServers } from './tool-servers.ts'

export type MountedSecret = {
  /** The variable of the box. */
  name: string
  hosts: readonly string[]
  /** Only the servers receive it. */
  value: string
}

/** The broker resolves all names to loopback. */
const getOptions = ({ port, ca }: ToolServers) => ({
  secretBroker: {
    resolve: async () => ['127.0.0.1'],
    upstreamPort: port,
    upstreamCa: ca,
  },
})
const ADMITTED = { BOXWOOD_SECRETS_PRIVATE: '127.0.0.0/8' }

/** The box shares the network and the programs of this machine, and the secrets are mounted. */
export async function startBoxWithSecrets(t: Test, servers: ToolServers, env: Record<string, string> = {}) {
  return startCoordinatorWithBox(t, {
    ...getOptions(servers),
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), ...ADMITTED, ...env },
  })
}

/** Machines that join with real agents. */
export const startCoordinatorOfMachines = (t: Test, servers: ToolServers) =>
  startTestCoordinator(t, {
    ...getOptions(servers),
    machines: 'joined',
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), ...ADMITTED },
  })

/** Resolves when the box can use the secrets. */
export async function mountSecrets(
  coordinator: Pick<TestCoordinator, 'api'>,
  boxId: string,
  hostsByName: Readonly<Record<string, readonly string[]>>,
): Promise<Record<string, MountedSecret>> {
  const secrets: Record<string, MountedSecret> = {}
  for (const [name, hosts] of Object.entries(hostsByName)) {
    const value = `value-${randomBytes(16).toString('hex')}`
    const body = {
      name: `${name}_${randomBytes(4).toString('hex').toUpperCase()}`,
      value,
      envName: name,
      hosts,
    }
    const { status, text } = await coordinator.api('POST', `/boxes/${boxId}/secrets`, body)
    if (status !== 201) throw new Error(text)
    secrets[name] = { name, hosts, value }
  }
  await waitUntil('the test request of the box has succeeded', async () => {
    const { json } = await coordinator.api('GET', `/boxes/${boxId}/secrets`)
    if (json.broker.state === 'failed') throw new Error(json.broker.message)
    return json.broker.state === 'ready'
  })
  return secrets
}
