// Decides whether an agent gets the current build now. A pure function of the versions, the rollout and earlier failures.
import { createHash } from 'node:crypto'

export type RolloutRules = {
  /** How many percent of the boxes get new builds. */
  share: number
  paused: boolean
}

export const DEFAULT_ROLLOUT: RolloutRules = { share: 100, paused: false }

export type UpgradeInput = {
  boxId: string
  /** The version that the agent reports, such as 1.0.0+4f2a81c09d3e5b76. */
  version: string
  /** The build that its agents should run. */
  targetBuild: string
  /** Whether this coordinator may bring the agent to this build. */
  isOffered: boolean
  /** The build that did not connect on this box, and that no operator has released again; null: none. */
  failedBuild: string | null
  rollout: RolloutRules
}

/**
 * failed: the box has returned from this build. not_selected: the box is not in the share of the rollout. elsewhere: another
 * coordinator upgrades the agent.
 */
export type UpgradeDecision = 'current' | 'failed' | 'paused' | 'not_selected' | 'elsewhere' | 'upgrade'

export function decideUpgrade({
  boxId,
  version,
  targetBuild,
  isOffered,
  failedBuild,
  rollout,
}: UpgradeInput): UpgradeDecision {
  if (getBuild(version) === targetBuild) return 'current'
  if (failedBuild === targetBuild) return 'failed'
  if (rollout.paused) return 'paused'
  if (getPercentile(boxId, targetBuild) >= rollout.share) return 'not_selected'
  return isOffered ? 'upgrade' : 'elsewhere'
}

/** The build in a version; an agent that runs from its sources has none, and the version stands for it. */
export const getBuild = (version: string): string => version.slice(version.indexOf('+') + 1)

/**
 * 0 to 99. A box keeps its percentile for one build, so that a larger share contains the smaller one. Each build starts with
 * other boxes.
 */
export function getPercentile(boxId: string, build: string): number {
  const digest = createHash('sha256').update(`${build}\0${boxId}`).digest()
  return digest.readUInt32BE(0) % 100
}
