// The rule of http/visibility.ts as a condition of SQL, for lists.
import { type RawBuilder, type SqlBool, sql } from 'kysely'

/** The resources that an actor may see. null: no restriction by this field. */
export type Visibility = {
  workspaceId: string
  boxIds: readonly string[] | null
  ownerUserId: string | null
}

/**
 * The condition of canSee() in SQL, for a table that has these columns.
 * @param boxColumn `id` for the boxes themselves
 */
export function whereVisible(
  { workspaceId, boxIds, ownerUserId }: Visibility,
  boxColumn: 'id' | 'box_id',
): RawBuilder<SqlBool> {
  const conditions = [sql`workspace_id = ${workspaceId}`]
  if (boxIds?.length === 0) conditions.push(sql`1 = 0`)
  else if (boxIds) conditions.push(sql`${sql.ref(boxColumn)} in (${sql.join(boxIds)})`)
  if (ownerUserId !== null) conditions.push(sql`owner_user_id = ${ownerUserId}`)
  return sql<SqlBool>`${sql.join(conditions, sql` and `)}`
}
