// Decides which boxes may use a secret (spec §2.8). Pure functions.
import type { BoxRow, SecretGrantRow, SecretRow } from '../db/schema.ts'

export type GrantRule = Pick<SecretGrantRow, 'box_id' | 'user_id'>
export type ScopeFacts = Pick<SecretRow, 'scope'>
export type BoxFacts = Pick<BoxRow, 'id' | 'owner_user_id'>

/**
 * Whether the box may use the secret: every box when it belongs to the workspace, otherwise the boxes that a grant covers. The
 * query of the broker (mount-store.ts) has the same rule in SQL.
 * @param isMember whether the owner of the box is still a member of the workspace
 */
export const covers = (
  { scope }: ScopeFacts,
  grants: readonly GrantRule[],
  { id, owner_user_id }: BoxFacts,
  isMember: boolean,
): boolean =>
  scope === 'workspace' ||
  grants.some(({ box_id, user_id }) => box_id === id || (isMember && user_id === owner_user_id))
