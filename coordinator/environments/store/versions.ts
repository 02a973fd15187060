// Queries on the versions of environments and the contents of their files.
import type { Db } from '../../db/open.ts'
import type { EnvironmentFileRow, EnvironmentVersionRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const insertVersion = (trx: Trx, row: EnvironmentVersionRow) =>
  trx.insertInto('environment_versions').values(row).execute()

export const findVersion = (
  db: Db | Trx,
  environmentId: string,
  versionNo: number,
): Promise<EnvironmentVersionRow | undefined> =>
  db
    .selectFrom('environment_versions')
    .selectAll()
    .where('environment_id', '=', environmentId)
    .where('version_no', '=', versionNo)
    .executeTakeFirst()

export const listVersions = (
  trx: Trx,
  environmentId: string,
): Promise<Pick<EnvironmentVersionRow, 'version_no' | 'config'>[]> =>
  trx
    .selectFrom('environment_versions')
    .select(['version_no', 'config'])
    .where('environment_id', '=', environmentId)
    .execute()

export async function hasMoreVersions(db: Db, environmentId: string, count: number): Promise<boolean> {
  const row = await db
    .selectFrom('environment_versions')
    .select('version_no')
    .where('environment_id', '=', environmentId)
    .orderBy('version_no')
    .limit(1)
    .offset(count)
    .executeTakeFirst()
  return row !== undefined
}

export async function deleteVersions(
  trx: Trx,
  environmentId: string,
  versionNos: readonly number[],
): Promise<void> {
  if (versionNos.length === 0) return
  await trx
    .deleteFrom('environment_versions')
    .where('environment_id', '=', environmentId)
    .where('version_no', 'in', versionNos)
    .execute()
}

export async function insertFiles(trx: Trx, rows: readonly EnvironmentFileRow[]): Promise<void> {
  if (rows.length > 0) await trx.insertInto('environment_files').values(rows).execute()
}

export const findFiles = async (db: Db | Trx, ids: readonly string[]): Promise<EnvironmentFileRow[]> =>
  ids.length === 0 ? [] : db.selectFrom('environment_files').selectAll().where('id', 'in', ids).execute()

/** Deletes the contents of an environment that no version has any more. */
export async function deleteOtherFiles(
  trx: Trx,
  environmentId: string,
  usedIds: ReadonlySet<string>,
): Promise<void> {
  const rows = await trx
    .selectFrom('environment_files')
    .select('id')
    .where('environment_id', '=', environmentId)
    .execute()
  for (const { id } of rows)
    if (!usedIds.has(id)) await trx.deleteFrom('environment_files').where('id', '=', id).execute()
}
