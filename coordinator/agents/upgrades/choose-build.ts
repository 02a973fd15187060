// Chooses the build of an agent when several coordinators use one database. Pure functions of what the coordinators report.
import { type FleetMember, MANAGED } from '../../replicas/fleet.ts'
import { compareVersions } from './compare-versions.ts'

export type BuildChoice = {
  buildId: string
  /** Whether this coordinator may bring the agent to the build. */
  isOffered: boolean
}

export type ChoiceInput = {
  members: readonly FleetMember[]
  /** The id of this coordinator. */
  ownId: string
  /** The version that the agent reports. */
  agentVersion: string
}

const isLater = (a: FleetMember, b: FleetMember): boolean =>
  a.startedAt === b.startedAt ? a.id > b.id : a.startedAt > b.startedAt

function isNewer(a: FleetMember, b: FleetMember): boolean {
  const order = compareVersions(a.version, b.version)
  return order === 0 ? isLater(a, b) : order > 0
}

/** The first in the order, among the coordinators that offer a build for the platform. */
function findOffer(
  members: readonly FleetMember[],
  platform: string,
  isBefore: (a: FleetMember, b: FleetMember) => boolean,
): { member: FleetMember; buildId: string } | null {
  let found: { member: FleetMember; buildId: string } | null = null
  for (const member of members) {
    const buildId = member.agentBuilds[platform]
    if (buildId !== undefined && (found === null || isBefore(member, found.member)))
      found = { member, buildId }
  }
  return found
}

/** The agent of an enrolled machine gets the build of the newest version. Only a coordinator that has this build installs it. */
export function chooseMachineBuild(input: ChoiceInput, platform: string): BuildChoice | null {
  const { members, ownId } = input
  const offer = findOffer(members, platform, isNewer)
  if (offer === null) return null
  const own = members.find(({ id }) => id === ownId)
  return choose(input, offer.buildId, own?.agentBuilds[platform] === offer.buildId)
}

/**
 * The agent of another box starts the build that the last coordinator of its host has installed. A coordinator of the same version
 * may restart it.
 */
export function chooseManagedBuild(input: ChoiceInput, host: string): BuildChoice | null {
  const { members, ownId } = input
  const ofHost = members.filter((member) => member.host === host)
  const offer = findOffer(ofHost, MANAGED, isLater)
  if (offer === null) return null
  const own = members.find(({ id }) => id === ownId)
  return choose(input, offer.buildId, own?.version === offer.member.version)
}

/** A coordinator does not bring an agent of a newer version to its own one while a coordinator of a newer version runs. */
function choose(
  { members, ownId, agentVersion }: ChoiceInput,
  buildId: string,
  isOffered: boolean,
): BuildChoice {
  const own = members.find(({ id }) => id === ownId)
  if (own === undefined) return { buildId, isOffered: false }
  const isNewerThanOwn = (version: string) => compareVersions(version, own.version) > 0
  const isHeld = isNewerThanOwn(agentVersion) && members.some(({ version }) => isNewerThanOwn(version))
  return { buildId, isOffered: isOffered && !isHeld }
}
