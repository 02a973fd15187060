// Which coordinator has the tunnel of each box: claims and releases those of this one, and knows those of the others.
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { defineTopic, notify, subscribe } from '../../../db/notifications.ts'
import type { Db } from '../../../db/open.ts'
import { transaction } from '../../../db/transaction.ts'
import type { Replica } from '../../../replicas/replica.ts'
import type { Tunnel } from '../types.ts'

export { deleteTunnel } from './store.ts'

import {
  claimTunnel,
  findTunnel,
  listOwnTunnels,
  listTunnels,
  releaseTunnel,
  type TunnelRow,
} from './store.ts'

/** What is known of the agent of a tunnel. */
export type AgentDescription = Pick<Tunnel, 'agentVersion' | 'protocolVersion' | 'failedBuild' | 'platform'>

/** The tunnel of a box at another coordinator. */
export type RemoteTunnel = AgentDescription &
  Pick<Tunnel, 'boxId' | 'generation' | 'instanceId'> & { replicaId: string }

export type OwnerEvents = {
  /** The tunnel of the box is at another coordinator now. */
  connected: [tunnel: RemoteTunnel]
  /** The box has no tunnel now. */
  disconnected: [boxId: string, reason: string]
  /** The tunnel of the box at this coordinator is an older one, and must close. */
  superseded: [boxId: string]
}

export type TunnelOwners = {
  /** Reads the tunnels of the other coordinators. */
  start(): Promise<void>
  /** The tunnel of the box at another coordinator, as far as this one has been notified. */
  find(boxId: string): RemoteTunnel | undefined
  /** The tunnel of the box at another coordinator, as the database has it. */
  findAgain(boxId: string): Promise<RemoteTunnel | undefined>
  /** Forgets the tunnel of another coordinator, which is about to be closed. */
  forget(boxId: string): void
  /**
   * Claims the tunnel for this coordinator. Resolves to its generation; null: another process of an agent is connected to another
   * coordinator.
   */
  claim(agent: AgentDescription & Pick<Tunnel, 'boxId' | 'instanceId'>): Promise<number | null>
  /** The tunnel has closed. */
  release(boxId: string, generation: number): void
  readonly events: EventEmitter<OwnerEvents>
  close(): void
}

/** `replicaId` null: the tunnel has closed. */
type TunnelChange = {
  boxId: string
  generation: number
  replicaId: string | null
  instanceId: string
  agent: AgentDescription
  reason: string
}

const TUNNELS = defineTopic<TunnelChange>('tunnels')
const RETRY_MS = 1_000

export type TunnelOwnersOptions = {
  db: Db
  replica: Pick<Replica, 'id' | 'isLeaseValid' | 'events'>
  log: Pick<Logger, 'error'>
}

export function createTunnelOwners({ db, replica, log }: TunnelOwnersOptions): TunnelOwners {
  const events = new EventEmitter<OwnerEvents>().setMaxListeners(0)
  const remote = new Map<string, RemoteTunnel>()
  /** The generations of the tunnels at this coordinator. */
  const own = new Map<string, number>()
  /** The tunnels that this coordinator is claiming. */
  const claims = createCounts()
  let isClosed = false
  const repeat = (what: string, work: () => Promise<void>, isDone = () => isClosed) =>
    repeatUntilDone({ what, work, isDone, log })

  const unsubscribe = subscribe(db, TUNNELS, (change, origin) => origin === 'elsewhere' && apply(change), {
    onGap: () => void repeat('read the tunnels of the other coordinators', read),
  })
  replica.events.on('stopped', removeOf)
  // Tunnels that have closed while there was no lease.
  const onRegained = () => void repeat('read the own tunnels', releaseUnused)
  replica.events.on('regained', onRegained)

  function apply({ boxId, generation, replicaId, instanceId, agent, reason }: TunnelChange): void {
    const known = Math.max(remote.get(boxId)?.generation ?? 0, own.get(boxId) ?? 0)
    if (known > generation) return
    if (replicaId === null) remove(boxId, reason)
    else add({ ...agent, boxId, generation, instanceId, replicaId })
  }

  function add(tunnel: RemoteTunnel): void {
    remote.set(tunnel.boxId, tunnel)
    if (own.delete(tunnel.boxId)) events.emit('superseded', tunnel.boxId)
    events.emit('connected', tunnel)
  }

  function remove(boxId: string, reason: string): void {
    if (remote.delete(boxId)) events.emit('disconnected', boxId, reason)
  }

  function removeOf(replicaId: string): void {
    for (const [boxId, tunnel] of [...remote])
      if (tunnel.replicaId === replicaId) remove(boxId, 'the coordinator of the tunnel has stopped')
  }

  const isNewer = ({ box_id: boxId, generation }: TunnelRow): boolean =>
    generation > Math.max(remote.get(boxId)?.generation ?? 0, own.get(boxId) ?? 0)

  const toTunnel = (row: TunnelRow): RemoteTunnel => ({
    ...(JSON.parse(row.agent) as AgentDescription),
    boxId: row.box_id,
    generation: row.generation,
    instanceId: row.instance_id,
    replicaId: row.lease_owner ?? '',
  })

  async function read(): Promise<void> {
    const rows = await listTunnels(db, replica.id)
    const boxIds = new Set(rows.map((row) => row.box_id))
    for (const boxId of [...remote.keys()])
      if (!boxIds.has(boxId)) remove(boxId, 'the agent is not connected any more')
    for (const row of rows) {
      if (isNewer(row)) add(toTunnel(row))
    }
  }

  /** Releases the rows of tunnels that are not open, with which no agent of another process could connect elsewhere. */
  async function releaseUnused(): Promise<void> {
    const rows = await listOwnTunnels(db, replica.id)
    for (const { box_id: boxId, generation } of rows)
      if (own.get(boxId) !== generation && !claims.has(boxId)) void releaseUntilDone(boxId, generation)
  }

  const record = (row: Omit<TunnelRow, 'agent'> & { agent: AgentDescription }, reason: string) => ({
    boxId: row.box_id,
    generation: row.generation,
    replicaId: row.lease_owner,
    instanceId: row.instance_id,
    agent: row.agent,
    reason,
  })

  return {
    start: read,
    find: (boxId) => remote.get(boxId),
    async findAgain(boxId) {
      const row = await findTunnel(db, boxId)
      if (row === undefined || row.lease_owner === replica.id) remove(boxId, 'the agent is not connected')
      else if (isNewer(row)) add(toTunnel(row))
      return remote.get(boxId)
    },
    forget: (boxId) => remove(boxId, 'the tunnel is closed'),
    async claim({ boxId, instanceId, agentVersion, protocolVersion, failedBuild, platform }) {
      const agent: AgentDescription = { agentVersion, protocolVersion, failedBuild, platform }
      const row = {
        box_id: boxId,
        lease_owner: replica.id,
        instance_id: instanceId,
        agent: JSON.stringify(agent),
      }
      claims.add(boxId)
      try {
        const generation = await transaction(db, async (trx) => {
          const generation = await claimTunnel(trx, row)
          if (generation !== null) notify(trx, TUNNELS, record({ ...row, agent, generation }, ''))
          return generation
        })
        // The agent may have connected to another coordinator since the commit.
        if (generation === null || (remote.get(boxId)?.generation ?? 0) > generation) return null
        own.set(boxId, generation)
        // The tunnel at the other coordinator closes when that one is notified.
        remote.delete(boxId)
        return generation
      } catch (error) {
        // The commit may have succeeded.
        setImmediate(onRegained)
        throw error
      } finally {
        claims.remove(boxId)
      }
    },
    release(boxId, generation) {
      if (own.get(boxId) === generation) own.delete(boxId)
      void releaseUntilDone(boxId, generation)
    },
    events,
    close() {
      isClosed = true
      unsubscribe()
      replica.events.off('stopped', removeOf)
      replica.events.off('regained', onRegained)
    },
  }

  /** A coordinator that is not alive releases its tunnels when its lease is valid again. */
  function releaseUntilDone(boxId: string, generation: number): Promise<void> {
    const release = () =>
      transaction(db, async (trx) => {
        const row = { box_id: boxId, lease_owner: replica.id, generation }
        if (!(await releaseTunnel(trx, row))) return
        const agent = { agentVersion: '', protocolVersion: 0, failedBuild: null, platform: null }
        const released = { ...row, lease_owner: null, instance_id: '', agent }
        notify(trx, TUNNELS, record(released, 'the agent has disconnected'))
      })
    const isDone = () => isClosed || !replica.isLeaseValid
    return repeat(`record that the agent of box ${boxId} has disconnected`, release, isDone)
  }
}

type Repetition = {
  what: string
  work(): Promise<void>
  isDone(): boolean
  log: Pick<Logger, 'error'>
}

async function repeatUntilDone({ what, work, isDone, log }: Repetition): Promise<void> {
  while (!isDone()) {
    try {
      return await work()
    } catch (err) {
      log.error({ err }, `failed to ${what}; will retry`)
      await sleep(RETRY_MS, undefined, { ref: false })
    }
  }
}

function createCounts() {
  const counts = new Map<string, number>()
  return {
    has: (key: string) => counts.has(key),
    add: (key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1),
    remove(key: string): void {
      const left = (counts.get(key) ?? 1) - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    },
  }
}
