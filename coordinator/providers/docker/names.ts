// The names and labels of everything that the provider creates in an engine.

export const LABELS = {
  /** The deployment id. Objects without it, or with another one, are never changed. */
  coordinator: 'boxwood.coordinator',
  /** An ObjectRole. */
  role: 'boxwood.role',
  box: 'boxwood.box',
  archive: 'boxwood.archive',
  workspace: 'boxwood.workspace',
  /** Of a state volume and a container: the call of Provider.create() that has made them. */
  creation: 'boxwood.creation',
} as const

/**
 * machine: the container, network or volume of a box. agent: the volume with the files of the agent. helper: a container that
 * exists during a call. archive: an image with the layer of a box.
 */
export type ObjectRole = 'machine' | 'agent' | 'helper' | 'archive'

export const getContainerName = (boxId: string): string => `boxwood-${boxId}`
export const getNetworkName = (boxId: string): string => `boxwood-${boxId}`
export const getStateVolume = (boxId: string): string => `boxwood-${boxId}-state`
export const getHomeVolume = (boxId: string): string => `boxwood-${boxId}-home`
export const getAgentVolume = (deploymentId: string): string => `boxwood-agent-${deploymentId}`
/**
 * The images with the layers of archives: no request can name them, and an image from a registry cannot get such a name. Archive
 * ids are the tags. Podman expands a name without a registry to `localhost/…`; this one is complete in both engines.
 */
export const getArchiveRepository = (deploymentId: string): string =>
  `localhost/boxwood-${deploymentId}/archive`

/** The image from which the container of a box was created again: see EngineMachines. */
export const getMachineRepository = (deploymentId: string): string =>
  `localhost/boxwood-${deploymentId}/machine`
/** The next container of a box, until the current one has been removed. */
export const getNextContainerName = (boxId: string): string => `${getContainerName(boxId)}-next`

export type Labels = Record<string, string>

export const createLabels = (
  deploymentId: string,
  role: ObjectRole,
  more: { boxId?: string; archiveId?: string; workspaceId?: string; creationId?: string } = {},
): Labels => ({
  [LABELS.coordinator]: deploymentId,
  [LABELS.role]: role,
  ...(more.boxId !== undefined && { [LABELS.box]: more.boxId }),
  ...(more.archiveId !== undefined && { [LABELS.archive]: more.archiveId }),
  ...(more.workspaceId !== undefined && { [LABELS.workspace]: more.workspaceId }),
  ...(more.creationId !== undefined && { [LABELS.creation]: more.creationId }),
})

/** The `filters` parameter of the lists of an engine: objects with all of the labels. */
export const filterByLabels = (labels: Labels): string =>
  JSON.stringify({ label: Object.entries(labels).map(([name, value]) => `${name}=${value}`) })
