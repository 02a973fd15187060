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
 * @param boxColumn `id` for the boxes themselves; `boxes.id` in a query that joins them
 */
export function whereVisible(
  { workspaceId, boxIds, ownerUserId }: Visibility,
  boxColumn: 'id' | 'box_id' | 'boxes.id',
): RawBuilder<SqlBool> {
  const column = (name: string) => sql.ref(boxColumn === 'boxes.id' ? `boxes.${name}` : name)
  const conditions = [sql`${column('workspace_id')} = ${workspaceId}`]
  if (boxIds?.length === 0) conditions.push(sql`1 = 0`)
  else if (boxIds) conditions.push(sql`${sql.ref(boxColumn)} in (${sql.join(boxIds)})`)
  if (ownerUserId !== null) conditions.push(sql`${column('owner_user_id')} = ${ownerUserId}`)
  return sql<SqlBool>`${sql.join(conditions, sql` and `)}`
}
