// Three coordinators on one Postgres server behind Caddy, each in a network namespace of its own, with real and simulated agents.
import { chmodSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import pg from 'pg'
import type { Test } from 'tap'
import type { Db } from '../../../coordinator/db/open.ts'
import { startReplicasProxy } from '../../install/start-proxy.ts'
import type { LoadBox } from '../chaos/replica-load.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import { joinMachine } from '../joined-machine.ts'
import { limitsEnv } from '../limits-env.ts'
import type { Postgres } from '../postgres.ts'
import { openShared } from '../shared-databases.ts'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import {
  createNetworkNamespace,
  type NetworkNamespace,
  POSTGRES_ADDRESS,
  PROXY_ADDRESS,
  REPLICA_ADDRESSES,
  REPLICA_PORT,
} from './network.ts'
import { type SimulatedAgents, startSimulatedAgents } from './simulated-agents.ts'

/** Far above what the test sends: it measures the replicas, not their limits. */
const LIMITS = limitsEnv({
  maxConnections: 20_000,
  addressConnections: 10_000,
  edgeRequestsPerSecond: 100_000,
  edgeConcurrency: 10_000,
  edgeStreams: 1_000,
})

export type NamespaceReplica = { network: NetworkNamespace; process: CoordinatorProcess }

export type NamespaceFleet = Awaited<ReturnType<typeof startNamespaceFleet>>

export type NamespaceFleetOptions = {
  /** Listens at POSTGRES_ADDRESS. */
  postgres: Postgres
  simulatedAgents: number
  /** Local boxes of each replica. There is one enrolled machine more. */
  boxesPerReplica: number
  env?: Record<string, string>
}

/** On a machine with the bridge of network.ts. Everything ends with the test. */
export async function startNamespaceFleet(t: Test, options: NamespaceFleetOptions) {
  const databaseName = (await options.postgres.newDatabase()).split('/').at(-1)
  const databaseUrl = `postgres://boxwood@${POSTGRES_ADDRESS}/${databaseName}`
  const proxy = await startReplicasProxy(t, PROXY_ADDRESS)
  const dir = createTempDir(t, 'replicas')
  // The users of boxes enter it.
  chmodSync(dir, 0o711)
  const replicas: NamespaceReplica[] = []
  for (const [index, address] of REPLICA_ADDRESSES.entries()) {
    const network = createNetworkNamespace(`replica${index}`, address)
    const env = {
      ...LIMITS,
      BOXWOOD_LOG: 'fatal',
      BOXWOOD_LOCAL_ISOLATION: 'process',
      BOXWOOD_LISTEN: `${address}:${REPLICA_PORT}`,
      BOXWOOD_REPLICA_URL: `http://${address}:${REPLICA_PORT}`,
      BOXWOOD_DATABASE_URL: databaseUrl,
      BOXWOOD_PUBLIC_URL: proxy.url,
      BOXWOOD_AGENT_URL: proxy.url,
      BOXWOOD_SHARE_BASE: `localhost:${new URL(proxy.url).port}`,
      BOXWOOD_TRUSTED_PROXIES: PROXY_ADDRESS,
      // The first one creates them.
      ...(index > 0 && { BOXWOOD_MASTER_KEYS: join(dir, '0/master-keys') }),
      ...options.env,
      BOXWOOD_DATA: join(dir, String(index)),
    }
    const process = await startCoordinatorProcess(t, env, undefined, { prefix: network.prefix })
    replicas.push({ network, process })
  }
  const [first] = replicas
  if (first === undefined) throw new Error('there is no replica')
  const headers = first.process.authHeaders()
  const database = new pg.Pool({ connectionString: databaseUrl, max: 4 })
  t.teardown(() => database.end())
  const db = await openShared(t, databaseUrl)
  t.comment('the replicas run')
  const boxes = await createBoxes(t, replicas, { proxyUrl: proxy.url, count: options.boxesPerReplica })
  t.comment('the boxes run')
  const simulated = await startSimulatedAgents(t, db, { count: options.simulatedAgents, url: proxy.url })
  return createFleet({ proxy, replicas, database, db, boxes, simulated, headers })
}

/** Each replica has `count` boxes on its host. The last box is an enrolled machine. */
async function createBoxes(
  t: Test,
  replicas: readonly NamespaceReplica[],
  { proxyUrl, count }: { proxyUrl: string; count: number },
): Promise<LoadBox[]> {
  const [first] = replicas
  if (first === undefined) throw new Error('there is no replica')
  const { id, hostname } = await first.process.waitForFirstBox()
  const boxes: LoadBox[] = [{ id, hostname }]
  for (let number = 0; number < count; number++)
    for (const [index, { process }] of replicas.entries()) {
      if (number === 0 && index === 0) continue
      const fields = { name: `box-${index}-${number}` }
      const box = await waitUntil(
        `replica ${index} creates a box`,
        async () => (await process.sendJson('POST', '/api/v1/boxes', fields)).box,
      )
      boxes.push({ id: box.id, hostname: box.hostname })
    }
  for (const box of boxes) await first.process.waitForState(box.id, 'running')
  const { url, dataDir, sendJson, waitForState, exec } = first.process
  const coordinator = { url, dataDir, sendJson, waitForState, exec, agentUrl: proxyUrl }
  const machine = await joinMachine(t, coordinator)
  return [...boxes, { id: machine.boxId, hostname: 'fig' }]
}

type Parts = {
  proxy: Awaited<ReturnType<typeof startReplicasProxy>>
  replicas: readonly NamespaceReplica[]
  database: pg.Pool
  db: Db
  boxes: readonly LoadBox[]
  simulated: SimulatedAgents
  headers: { authorization: string }
}

function createFleet(parts: Parts) {
  const { proxy, replicas, database, headers, boxes, simulated } = parts

  /** The id of the running process of the replica. */
  async function findId({ network }: NamespaceReplica): Promise<string> {
    const { rows } = await database.query('select id from replicas where url = $1 order by started_at desc', [
      `http://${network.address}:${REPLICA_PORT}`,
    ])
    return rows[0].id
  }

  /** The boxes whose agents are connected to the replica with this id. */
  async function listTunnels(id: string): Promise<string[]> {
    const { rows } = await database.query('select box_id from tunnels where lease_owner = $1', [id])
    return rows.map(({ box_id }) => box_id)
  }

  /** The index of the replica to which the agent of the box is connected; -1: to none. */
  async function findOwner(boxId: string): Promise<number> {
    const { rows } = await database.query(
      'select replicas.url from tunnels join replicas on replicas.id = lease_owner where box_id = $1',
      [boxId],
    )
    return REPLICA_ADDRESSES.findIndex((address) => rows[0]?.url === `http://${address}:${REPLICA_PORT}`)
  }

  return {
    ...parts,
    url: proxy.url,
    authHeaders: () => ({ ...headers }),
    send: (...request: SendRequest) => send(proxy.url, headers, request),
    /** Without the proxy. */
    sendTo: ({ process }: NamespaceReplica, ...request: SendRequest) => send(process.url, headers, request),
    agentCount: boxes.length + simulated.boxIds.length,
    findId,
    listTunnels,
    findOwner,
    async countTunnels(): Promise<number[]> {
      return Promise.all(replicas.map(async (replica) => (await listTunnels(await findId(replica))).length))
    },
    /** Resolves when no agent of the boxes is connected to the replica with this id, and each one to another replica. */
    waitUntilMoved: (boxIds: readonly string[], id: string) =>
      waitUntil(
        'the agents are connected to other replicas',
        async () => {
          const { rows } = await database.query(
            'select count(*)::int as count from tunnels where box_id = any($1) and lease_owner is not null and lease_owner <> $2',
            [boxIds, id],
          )
          return rows[0].count === boxIds.length
        },
        LONG_DEADLINE_MS,
      ),
    async readStatus(replica: NamespaceReplica, path: string): Promise<number | undefined> {
      const response = await send(replica.process.url, headers, ['GET', path])
      response.resume()
      return response.statusCode
    },
  }
}

type SendRequest = [
  method: string,
  path: string,
  body?: string | Buffer | Readable,
  headers?: Record<string, string | number>,
]

/**
 * Sends a request on a new connection. The caller reads the response body. Rejects with the code of the error of the connection,
 * or with proxy_502 or proxy_503, when the proxy has lost its connection to the replica, or knows of none that is ready.
 */
function send(
  url: string,
  headers: Record<string, string>,
  [method, path, body, own = {}]: SendRequest,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method, agent: false, headers: { ...headers, ...own } })
    request.once('error', reject)
    request.once('response', (response) => {
      const { statusCode = 0 } = response
      // All responses of a replica have a content type.
      if (statusCode < 502 || response.headers['content-type'] !== undefined) return resolve(response)
      response.resume()
      const code = `proxy_${statusCode}`
      reject(Object.assign(new Error(`${method} ${path}: ${code}`), { code }))
    })
    if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) request.end(body)
    else body.on('error', (error) => request.destroy(error)).pipe(request)
  })
}
