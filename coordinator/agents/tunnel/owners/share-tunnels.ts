// The tunnels of this coordinator among those of the others: claims each one, and waits for those elsewhere.
import type { Logger } from 'pino'
import type { Db } from '../../../db/open.ts'
import type { Peers } from '../../../replicas/peers.ts'
import type { Replica } from '../../../replicas/replica.ts'
import type { OtherCoordinators } from '../accept.ts'
import type { OpenSessions } from '../open-sessions.ts'
import type { Registry } from '../registry.ts'
import type { Tunnel } from '../types.ts'
import { createTunnelOwners, type RemoteTunnel, type TunnelOwners } from './owners.ts'
import { createRemoteTunnels, type LocalTunnels, type RemoteTunnels } from './remote-tunnels.ts'

export type SharedTunnels = OtherCoordinators & {
  readonly owners: TunnelOwners
  readonly remote: RemoteTunnels
  start(): Promise<void>
  /** See Tunnels. */
  wait(boxId: string, ms: number, signal?: AbortSignal): Promise<Tunnel>
  close(): void
}

export type SharedTunnelsOptions = {
  db: Db
  peers: Peers
  replica: Replica
  log: Pick<Logger, 'error'>
  registry: Registry
  sessions: Pick<OpenSessions, 'moveAway'>
  local: LocalTunnels
}

const MOVED = 'the agent has connected to another coordinator'

export function shareTunnels(options: SharedTunnelsOptions): SharedTunnels {
  const { db, peers, replica, log, registry, sessions, local } = options
  const owners = createTunnelOwners({ db, replica, log })
  const remote = createRemoteTunnels({ peers, owners, local, log })
  const onLost = () => sessions.moveAway('this coordinator has lost its lease')
  replica.events.on('lost', onLost)
  owners.events.on('superseded', (boxId) => registry.get(boxId)?.destroy(MOVED))
  owners.events.on('connected', ({ boxId }) => registry.events.emit('connectedElsewhere', boxId))
  owners.events.on('disconnected', (boxId, reason) =>
    registry.events.emit('disconnectedElsewhere', boxId, reason),
  )

  /** Rejects with the reason of the signal. */
  function waitForRemote(boxId: string, signal: AbortSignal): Promise<Tunnel> {
    return new Promise((resolve, reject) => {
      const end = () => {
        owners.events.off('connected', onConnected)
        signal.removeEventListener('abort', onAbort)
      }
      const onConnected = ({ boxId: connected }: RemoteTunnel) => {
        const tunnel = connected === boxId ? remote.find(boxId) : undefined
        if (tunnel === undefined) return
        end()
        resolve(tunnel)
      }
      const onAbort = () => {
        end()
        reject(signal.reason)
      }
      owners.events.on('connected', onConnected)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  return {
    owners,
    remote,
    start: owners.start,
    hasRival: remote.hasRival,
    async claim(session) {
      const generation = await owners.claim(session)
      if (generation === null) return false
      void session.closed.then(() => owners.release(session.boxId, generation))
      return true
    },
    async wait(boxId, ms, signal) {
      const found = registry.get(boxId) === undefined ? remote.find(boxId) : undefined
      if (found !== undefined) return found
      const settled = new AbortController()
      const signals = signal === undefined ? settled.signal : AbortSignal.any([signal, settled.signal])
      const elsewhere = waitForRemote(boxId, signals)
      elsewhere.catch(() => undefined)
      try {
        return await Promise.race([registry.wait(boxId, ms, signals), elsewhere])
      } finally {
        settled.abort()
      }
    },
    close() {
      replica.events.off('lost', onLost)
      remote.close()
      owners.close()
    },
  }
}
