// Lists the boxes of a workspace for other rooms, which do not use the store of this room.
export { listBoxPositions } from './store/box-lists.ts'
