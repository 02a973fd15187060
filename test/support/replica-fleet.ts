// Coordinator processes that share one Postgres database, behind a proxy that skips those that do not listen.
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { startBalancingProxy } from './balancing-proxy.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from './coordinator-process.ts'
import { createTempDir } from './temp-dir.ts'

export type ReplicaFleet = Awaited<ReturnType<typeof startReplicaFleet>>

export type FleetOptions = {
  /** The URL of the database, as each replica uses it. */
  databaseUrls: readonly string[]
  env?: Record<string, string>
}

/** Boxes and replicas end with the test. */
export async function startReplicaFleet(t: Test, { databaseUrls, env = {} }: FleetOptions) {
  const proxy = await startBalancingProxy()
  const dir = createTempDir(t, 'replicas')
  const replicas: CoordinatorProcess[] = []
  const port = (url: string) => Number(new URL(url).port)
  const updateTargets = () => {
    proxy.targets.splice(0, Infinity, ...replicas.map(({ url }) => port(url)))
  }
  // Runs after the teardown of the replicas, which need connections to the boxes.
  t.teardown(proxy.close)
  for (const [index, databaseUrl] of databaseUrls.entries()) {
    const replica = await startCoordinatorProcess(t, {
      BOXWOOD_LOG: 'silent',
      BOXWOOD_DATABASE_URL: databaseUrl,
      BOXWOOD_REPLICA_URL: 'http://127.0.0.1:0',
      BOXWOOD_PUBLIC_URL: proxy.url,
      BOXWOOD_AGENT_URL: proxy.url,
      BOXWOOD_SHARE_BASE: `localhost:${port(proxy.url)}`,
      // The first one creates them.
      ...(index > 0 && { BOXWOOD_MASTER_KEYS: join(dir, '0/master-keys') }),
      ...env,
      BOXWOOD_DATA: join(dir, String(index)),
    })
    replicas.push(replica)
    updateTargets()
  }
  // The boxes of a replica that is down cannot be deleted.
  t.teardown(async () => {
    for (const replica of replicas) await replica.ensureRunning()
  })
  const headers = replicas[0]?.authHeaders()

  /** Sends a request through the proxy, on a new connection. The caller reads the response body. */
  function send(
    method: string,
    path: string,
    body?: string | Buffer | Readable,
    own: Record<string, string | number> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = { method, agent: false, headers: { ...headers, ...own } }
      const request = httpRequest(proxy.url + path, options)
      request.once('error', reject)
      request.once('response', resolve)
      if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) request.end(body)
      else body.on('error', (error) => request.destroy(error)).pipe(request)
    })
  }

  return {
    replicas,
    proxy,
    send,
    url: proxy.url,
    authHeaders: () => ({ ...headers }),
    /** Starts a replica that has been killed. */
    async restart(replica: CoordinatorProcess): Promise<void> {
      await replica.start()
      updateTargets()
    },
  }
}
