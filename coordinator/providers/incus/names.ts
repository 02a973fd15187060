// The names and labels of everything that the provider creates in Incus.
import { createHash } from 'node:crypto'
import type { Region } from '../../../shared/tiers.ts'
import type { ArchiveKey } from '../provider.ts'

/** Keys of the configuration of instances and volumes. */
export const LABELS = {
  /** The deployment id. Objects without it, or with another one, are never changed. */
  coordinator: 'user.boxwood.coordinator',
  /** box, archive or agent. */
  role: 'user.boxwood.role',
  region: 'user.boxwood.region',
  box: 'user.boxwood.box',
  workspace: 'user.boxwood.workspace',
  archive: 'user.boxwood.archive',
  /** The name of the instance, when its creation has ended. A copy has the name of its source until then. */
  complete: 'user.boxwood.complete',
  /** Of a copy on another member: the name of the instance that it replaces, when that is absent or incomplete (moves.ts). */
  replaces: 'user.boxwood.replaces',
  /** The fingerprint of the image. */
  image: 'user.boxwood.image',
  /** Of an archive: ArchiveInfo as JSON. */
  info: 'user.boxwood.info',
} as const

/** A name has at most 63 characters. */
export const getInstanceName = (boxId: string): string => `boxwood-${boxId.replaceAll('-', '')}`

/** Returns null for the name of another instance. */
export function parseInstanceName(name: string): string | null {
  const hex = /^boxwood-([0-9a-f]{32})$/.exec(name)?.[1]
  return hex?.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') ?? null
}

/** Two regions in one server have different copies of an archive. */
export const getArchiveName = (region: Region, { workspaceId, archiveId }: ArchiveKey): string => {
  const hash = createHash('sha256').update(`${region}\0${workspaceId}\0${archiveId}`)
  return `boxwood-a-${hash.digest('hex').slice(0, 40)}`
}

export const getAgentVolume = (deploymentId: string, contentId: string): string =>
  `boxwood-agent-${deploymentId}-${createHash('sha256').update(contentId).digest('hex').slice(0, 16)}`

/** The name of a network interface has at most 15 characters. */
export const getNetworkName = (deploymentId: string): string => `bw-${deploymentId.slice(0, 12)}`

/** The `filter` of a list: objects with these keys in their configuration. */
export const filterByLabels = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `config.${name} eq ${value}`)
    .join(' and ')
