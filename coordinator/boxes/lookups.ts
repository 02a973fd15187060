// Reads boxes and snapshots for other rooms, which do not use the store of this room.
export {
  countLiveBoxes,
  countLiveBoxesOfWorkspace,
  listBoxesToMeter,
  listHostnames,
} from './store/box-lists.ts'
export { findBox, hasUnrestrictedBoxes } from './store/boxes.ts'
export { findSnapshot, listSnapshotsToMeter } from './store/snapshots.ts'
