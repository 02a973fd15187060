// Counts boxes for other rooms, which do not use the store of this room.
export { countLiveBoxes } from './store/box-lists.ts'
