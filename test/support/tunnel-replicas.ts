// Tunnel components of several coordinators that share a Postgres database, with agents that connect to any of them.
import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import { SecretValue } from '../../coordinator/base/sealing/secret-value.ts'
import { createPeers } from '../../coordinator/replicas/peers.ts'
import type { Replica, ReplicaEvents } from '../../coordinator/replicas/replica.ts'
import { renewReplica } from '../../coordinator/replicas/store.ts'
import { newId } from '../../shared/ids.ts'
import { TEST_HOST } from './replica.ts'
import { openShared } from './shared-databases.ts'
import { silentLog, startTunnelServer, type TunnelServer } from './tunnel.ts'

export type TunnelReplica = TunnelServer & {
  id: string
  /** Ends the lease, in the database and for this coordinator. */
  loseLease(): Promise<void>
  /** Closes the server without a word to the others. Its lease remains. */
  cutOff(): void
}

const KEY = new SecretValue('ab'.repeat(32))
const HOUR_MS = 60 * 60_000

/** Returns a function that starts a coordinator. @param url of the database */
export function createTunnelReplicas(t: Test, url: string): () => Promise<TunnelReplica> {
  /** All coordinators know the boxes of the database. */
  const tokens = new Map<string, string>()
  const emitters = new Map<string, EventEmitter<ReplicaEvents>>()

  return async () => {
    const db = await openShared(t, url)
    const events = new EventEmitter<ReplicaEvents>()
    const id = newId('replica')
    let isLeaseValid = true
    const replica: Replica = {
      id,
      isShared: true,
      host: TEST_HOST,
      get isLeaseValid() {
        return isLeaseValid
      },
      fleet: null,
      events,
      close: async () => undefined,
    }
    emitters.set(id, events)
    const peers = createPeers({ db, replica, openKey: async () => KEY, log: silentLog })
    await peers.open()
    const server = await startTunnelServer({ sharing: { db, peers, replica }, reconnectSpreadMs: 0, tokens })
    const row = { id, host: TEST_HOST, version: '1.0.0', name: id, url: server.url, settings: '{}' }
    await renewReplica(db, row, HOUR_MS)
    await server.tunnels.start()
    t.teardown(async () => {
      peers.close()
      await server.close()
    })
    return {
      ...server,
      id,
      async loseLease() {
        isLeaseValid = false
        events.emit('lost')
        await renewReplica(db, row, -1)
        for (const [other, emitter] of emitters) if (other !== id) emitter.emit('stopped', id)
      },
      cutOff() {
        server.server.close()
        server.server.closeAllConnections()
      },
    }
  }
}
