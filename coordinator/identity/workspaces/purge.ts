// The steps of a purge that change the workspace itself and its members.
export { removeMembers } from '../store/users.ts'
export { deleteWorkspace } from '../store/workspaces.ts'
