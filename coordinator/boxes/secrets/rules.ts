// Decides which boxes may use a secret (spec §2.8). Pure functions.
import type { BoxRow, SecretGrantRow } from '../../db/schema.ts'

export type GrantRule = Pick<SecretGrantRow, 'box_id' | 'user_id'>
export type BoxFacts = Pick<BoxRow, 'id' | 'owner_user_id'>

/**
 * Whether the grants of a secret cover the box. Without grants, the secret belongs to the workspace. The query of the broker
 * (mount-store.ts) has the same rule in SQL.
 * @param isMember whether the owner of the box is still a member of the workspace
 */
export const covers = (
  grants: readonly GrantRule[],
  { id, owner_user_id }: BoxFacts,
  isMember: boolean,
): boolean =>
  grants.length === 0 ||
  grants.some(({ box_id, user_id }) => box_id === id || (isMember && user_id === owner_user_id))
