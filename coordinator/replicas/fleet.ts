// The coordinators of a database that are alive, with what each one reports of itself: the builds of the agent, and its tunnels.
import { z } from 'zod'
import { parseJson } from '../../shared/parse-json.ts'
import type { Db } from '../db/open.ts'
import { type AliveReplica, listAlive, type ReplicaReport, storeAgentBuilds, storeStopping } from './store.ts'

/** Build ids by the platform of the agent (AgentPlatform), and MANAGED. */
export type AgentBuilds = Readonly<Record<string, string>>

/** The agents of the boxes on the host of a coordinator, which start the build that this coordinator has installed there. */
export const MANAGED = 'managed'

export type FleetMember = {
  id: string
  /** The version of its program. */
  version: string
  /** See Replica.host. */
  host: string | null
  /** By the clock of the database. */
  startedAt: number
  agentBuilds: AgentBuilds
  /** As of the last renewal of its lease. null: it does not accept agents. */
  tunnels: number | null
  /** How long it has its lease, in milliseconds. null: the lease does not expire. */
  remainingMs: number | null
}

export type Fleet = {
  /** The coordinators that were alive at the last read(), with this one. */
  readonly members: readonly FleetMember[]
  /** Reads the members. They are as of a time after the call. */
  read(): Promise<readonly FleetMember[]>
  /** Resolves when all coordinators can read that this one offers the build for the platform. */
  offerBuild(platform: string, buildId: string): Promise<void>
  /** The number is reported with each renewal of the lease. null, as before the first call: this coordinator does not accept agents. */
  countTunnels(count: (() => number) | null): void
  /** This coordinator accepts no agents any more. Resolves when the others can read it. */
  stopAccepting(): Promise<void>
}

export type OwnFleet = Fleet & { getReport(): ReplicaReport }

const buildsSchema = z.record(z.string(), z.string())

export function createFleet(db: Db, ownId: string): OwnFleet {
  let members: readonly FleetMember[] = []
  const builds = new Map<string, string>()
  let count: (() => number) | null = null
  let running: Promise<unknown> = Promise.resolve()
  /** The read that starts when the running one has ended. */
  let next: Promise<readonly FleetMember[]> | undefined
  /** Writes are in the order of the calls. */
  let writing: Promise<unknown> = Promise.resolve()

  const getReport = (): ReplicaReport => ({
    agent_builds: JSON.stringify(Object.fromEntries(builds)),
    tunnels: count?.() ?? null,
  })

  async function load(): Promise<readonly FleetMember[]> {
    next = undefined
    members = (await listAlive(db)).map(toMember)
    return members
  }

  return {
    get members() {
      return members
    },
    read() {
      if (next === undefined) {
        next = running.then(load, load)
        running = next
      }
      return next
    },
    async offerBuild(platform, buildId) {
      if (builds.get(platform) !== buildId) {
        builds.set(platform, buildId)
        const write = () => storeAgentBuilds(db, ownId, getReport().agent_builds)
        writing = writing.then(write, write)
      }
      try {
        await writing
      } catch (error) {
        // The next call writes it again.
        builds.delete(platform)
        throw error
      }
    },
    countTunnels(counter) {
      count = counter
    },
    async stopAccepting() {
      count = null
      await storeStopping(db, ownId)
    },
    getReport,
  }
}

function toMember(row: AliveReplica): FleetMember {
  const builds = buildsSchema.safeParse(parseJson(row.agent_builds ?? ''))
  return {
    id: row.id,
    version: row.version,
    host: row.host,
    startedAt: row.started_at,
    agentBuilds: builds.success ? builds.data : {},
    tunnels: row.tunnels,
    remainingMs: row.remaining_ms,
  }
}
