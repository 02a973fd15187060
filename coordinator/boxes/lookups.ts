// Reads boxes and snapshots for other rooms, which do not use the store of this room.

export { adoptBoxes, hasRowsWithoutHost, listDownHosts } from './store/box-hosts.ts'
export {
  type ChangedBoxRow,
  countLiveBoxes,
  countLiveBoxesOfWorkspace,
  listBoxesById,
  listBoxesToMeter,
  listBoxOwners,
  listHostnames,
  listLocalBoxRegions,
  listTeamBoxes,
  type TeamBoxRow,
} from './store/box-lists.ts'
export { findBox, hasUnrestrictedBoxes } from './store/boxes.ts'
export { listDeletedMachines } from './store/deleted-machines.ts'
export { type ImageUse, listImageUses } from './store/image-uses.ts'
export { countBoxesByEnvironment, listUsedVersions, lockBoxesOfEnvironment } from './store/pins.ts'
export { listProviderUses } from './store/provider-uses.ts'
export {
  findSnapshot,
  listSnapshotResources,
  listSnapshots,
  listSnapshotsById,
  listSnapshotsToMeter,
} from './store/snapshots.ts'
