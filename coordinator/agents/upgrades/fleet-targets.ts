// The builds that agents should run when several coordinators use one database.
import type { Clock } from '../../../shared/clock.ts'
import { type Fleet, type FleetMember, MANAGED } from '../../replicas/fleet.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { Tunnel } from '../tunnel/types.ts'
import { type BuildChoice, chooseMachineBuild, chooseManagedBuild } from './choose-build.ts'

export type FleetTargets = {
  /** @param ownBuildId the build of this coordinator for the platform; null: it has none */
  chooseForMachine(
    tunnel: Pick<Tunnel, 'agentVersion'>,
    platform: string,
    ownBuildId: string | null,
  ): Promise<BuildChoice | null>
  /** @param host the host of the box. Default: from the database */
  chooseForManaged(
    tunnel: Pick<Tunnel, 'boxId' | 'agentVersion'>,
    host?: string | null,
  ): Promise<BuildChoice | null>
  /** Offers the build that this coordinator has installed on its host. */
  offerManaged(buildId: string): Promise<void>
  /** Reads what the coordinators report. */
  refresh(): Promise<void>
  close(): void
}

export type FleetTargetsOptions = {
  fleet: Fleet
  replica: Pick<Replica, 'id' | 'events'>
  /** Returns null when the box does not exist or has no host. */
  findHost(boxId: string): Promise<string | null>
  /** Called when other choices than before are possible. */
  onChange(): void
  /** Default: monotonic. */
  clock?: Clock | undefined
}

/** A coordinator that has stopped may only be restarting: its agents keep their build for this long. */
export const HOLD_MS = 5 * 60_000

export function createFleetTargets(options: FleetTargetsOptions): FleetTargets {
  const { fleet, replica, findHost, onChange, clock = { now: () => performance.now() } } = options
  const seen = new Map<string, { member: FleetMember; at: number }>()
  let known = ''

  /** The members, with those that have stopped a short time ago. */
  function listRecent(): FleetMember[] {
    const now = clock.now()
    for (const member of fleet.members) seen.set(member.id, { member, at: now })
    for (const [id, { at }] of seen) if (now - at > HOLD_MS) seen.delete(id)
    return [...seen.values()].map(({ member }) => member)
  }

  const describe = (members: readonly FleetMember[]) =>
    members.map(({ id, agentBuilds }) => ({ id, agentBuilds }))

  function onMembersRead(): void {
    const now = JSON.stringify([describe(fleet.members), describe(listRecent())])
    if (now === known) return
    known = now
    onChange()
  }
  replica.events.on('membersRead', onMembersRead)

  async function offer(platform: string, buildId: string): Promise<void> {
    const own = fleet.members.find(({ id }) => id === replica.id)
    if (own?.agentBuilds[platform] === buildId) return
    await fleet.offerBuild(platform, buildId)
    await fleet.read()
  }

  return {
    async chooseForMachine({ agentVersion }, platform, ownBuildId) {
      if (ownBuildId !== null) await offer(platform, ownBuildId)
      return chooseMachineBuild({ members: listRecent(), ownId: replica.id, agentVersion }, platform)
    },
    async chooseForManaged({ boxId, agentVersion }, given) {
      const host = given ?? (await findHost(boxId))
      if (host === null) return null
      return chooseManagedBuild({ members: fleet.members, ownId: replica.id, agentVersion }, host)
    },
    offerManaged: (buildId) => offer(MANAGED, buildId),
    refresh: async () => void (await fleet.read()),
    close: () => void replica.events.off('membersRead', onMembersRead),
  }
}
