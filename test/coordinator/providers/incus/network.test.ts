// The rules that keep boxes of Incus apart are missing only where the server answers that its machine has no support for them.
import t from 'tap'
import {
  EngineStatusError,
  EngineTimeoutError,
  EngineUnavailableError,
} from '../../../../coordinator/providers/engine-http/errors.ts'
import type { IncusClient } from '../../../../coordinator/providers/incus/client.ts'
import { ensureNetwork } from '../../../../coordinator/providers/incus/network.ts'
import type { Server } from '../../../../coordinator/providers/incus/server.ts'

async function ensureWith(failure: Error) {
  const network = { config: { 'user.boxwood.coordinator': 'test', 'ipv4.address': '10.0.0.1/24' } }
  const client = {
    find: async (path: string) => (path.startsWith('/networks/') ? network : null),
    call: async () => {
      throw failure
    },
  } as unknown as IncusClient
  const warnings: string[] = []
  const log = { warn: (_fields: object, message: string) => void warnings.push(message) }
  await ensureNetwork(client, { isClustered: false } as Server, 'test', log)
  return warnings
}

t.test('a refusal of the firewall is logged', async (t) => {
  t.match(await ensureWith(new EngineStatusError('Incus', 'POST /network-acls', 500, 'no nftables')), [
    /^boxes can send packets to each other/,
  ])
})

t.test('a time-out or a lost connection is not a refusal', async (t) => {
  await t.rejects(ensureWith(new EngineTimeoutError('Incus did not answer.')), { name: 'EngineTimeoutError' })
  await t.rejects(ensureWith(new EngineUnavailableError('The connection broke.')), {
    name: 'EngineUnavailableError',
  })
})

t.test('a network that Incus has not created yet is not used', async (t) => {
  const network = {
    config: { 'user.boxwood.coordinator': 'test', 'ipv4.address': '10.0.0.1/24', 'security.acls': 'acl' },
  }
  for (const isClustered of [false, true]) {
    const answers = ['Pending', 'Pending', 'Created']
    const posts: unknown[] = []
    const next = async (path: string) =>
      path === '/cluster/members' ? [{ server_name: 'a' }] : { ...network, status: answers.shift() }
    const client = {
      find: next,
      get: next,
      call: async (_method: string, path: string) => void posts.push(path),
    } as unknown as IncusClient
    await ensureNetwork(client, { isClustered } as Server, 'test', { warn: () => undefined })
    t.same(answers, [])
    t.equal(posts.length > 0, isClustered, 'the creation in a cluster is continued')
  }
})
