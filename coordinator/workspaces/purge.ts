// The steps of a purge that change the workspace itself and its members.
export { removeMembers } from '../identity-store/users.ts'
export { deleteWorkspace } from '../identity-store/workspaces.ts'
