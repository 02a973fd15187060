// Further coordinators on the database of a coordinator under test, in a run through replicas (on-replicas.ts).
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Coordinator, type Overrides, startCoordinator } from '../../coordinator/server/app.ts'
import { loadConfig } from '../../coordinator/server/config.ts'
import { startAlternatingProxy } from './alternating-proxy.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The proxy to the coordinators of the run; null: there is one coordinator, and no proxy. */
export async function startReplicaProxy(t: Test) {
  const count = Number(process.env.BOXWOOD_TEST_REPLICAS ?? 1)
  if (count === 1 || process.env.BOXWOOD_TEST_POSTGRES === undefined) return null
  const proxy = await startAlternatingProxy()
  t.teardown(proxy.close)
  const { url, targets } = proxy
  return {
    url,
    env: {
      BOXWOOD_REPLICA_URL: 'http://127.0.0.1:0',
      BOXWOOD_PUBLIC_URL: url,
      BOXWOOD_AGENT_URL: url,
      BOXWOOD_SHARE_BASE: `localhost:${new URL(url).port}`,
    },
    /**
     * Starts the other coordinators, with the same settings as the first one. Their data directories are in that of the first one:
     * a later start with its directory finds the boxes of all hosts.
     */
    async start(first: Coordinator, env: Env, overrides: Overrides): Promise<Coordinator[]> {
      targets.push(Number(new URL(first.url).port))
      const others: Coordinator[] = []
      while (others.length < count - 1) {
        const config = loadConfig({
          BOXWOOD_MASTER_KEYS: join(first.dataDirectory.dir, 'master-keys'),
          ...env,
          BOXWOOD_DATA: join(first.dataDirectory.dir, 'replicas', String(others.length)),
        })
        const other = await startCoordinator(config, overrides)
        targets.push(Number(new URL(other.url).port))
        others.push(other)
      }
      return others
    },
  }
}
