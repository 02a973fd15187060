// Reads users, keys and workspaces for other rooms, which do not use the store of this room.
export { findKey } from '../identity-store/keys.ts'
export { findFirstOwnerId, findRole } from '../identity-store/users.ts'
export { findWorkspace } from '../identity-store/workspaces.ts'
