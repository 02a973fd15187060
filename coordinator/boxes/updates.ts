// Writes for the rooms of features: the columns and events of a box that are theirs, such as its variables and its environment.
export { updateBox } from './store/boxes.ts'
export { forgetDeletedMachines } from './store/deleted-machines.ts'
export { recordStateChange } from './store/events.ts'
