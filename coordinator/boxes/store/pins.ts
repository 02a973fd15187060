// The versions of environments that boxes and snapshots use.
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'

/**
 * The versions that boxes and snapshots use, and those whose files are on a box. Deleted boxes and snapshots use none. One
 * statement, so that a version that moves from a box to a snapshot is seen.
 */
export async function listUsedVersions(trx: Trx, environmentId: string): Promise<Set<number>> {
  const selectOfBoxes = (column: 'environment_version_no' | 'applied_version_no') =>
    trx
      .selectFrom('boxes')
      .select(`${column} as no`)
      .where('environment_id', '=', environmentId)
      .where('terminated_at', 'is', null)
  const rows = await selectOfBoxes('environment_version_no')
    .union(selectOfBoxes('applied_version_no'))
    .union(
      trx
        .selectFrom('snapshots')
        .select('environment_version_no as no')
        .where('environment_id', '=', environmentId)
        .where('deleted_at', 'is', null),
    )
    .execute()
  return new Set(rows.flatMap(({ no }) => no ?? []))
}

/** The numbers of live boxes that use any version, by environment. */
export async function countBoxesByEnvironment(
  db: Db | Trx,
  environmentIds: readonly string[],
): Promise<Map<string | null, number>> {
  if (environmentIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('boxes')
    .select(['environment_id', ({ fn }) => fn.countAll().as('count')])
    .where('environment_id', 'in', environmentIds)
    .where('terminated_at', 'is', null)
    .groupBy('environment_id')
    .execute()
  return new Map(rows.map((row) => [row.environment_id, Number(row.count)]))
}

/** The live boxes of the workspace that use any version, locked in the order of their ids. */
export const lockBoxesOfEnvironment = (
  trx: Trx,
  workspaceId: string,
  environmentId: string,
): Promise<BoxRow[]> =>
  forUpdate(
    trx,
    trx
      .selectFrom('boxes')
      .selectAll()
      .where('environment_id', '=', environmentId)
      .where('workspace_id', '=', workspaceId)
      .where('terminated_at', 'is', null)
      .orderBy('id'),
  ).execute()
