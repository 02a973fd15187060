// Reads users, keys and workspaces for other rooms, which do not use the store of this room.
export { findKey } from './store/keys.ts'
export { findMember, findMemberByEmail } from './store/members.ts'
export { findFirstOwnerId, findRole, findUserById, listOwners, listUserNames } from './store/users.ts'
export { findWorkspace, isFirstWorkspace, listWorkspaceIds, listWorkspaces } from './store/workspaces.ts'
