// Queries on environments.
import type { Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { EnvironmentRow, EnvironmentVersionRow } from '../../db/schema.ts'
import { forUpdate, type Trx } from '../../db/transaction.ts'

export const findEnvironment = (db: Db | Trx, id: string): Promise<EnvironmentRow | undefined> =>
  db.selectFrom('environments').selectAll().where('id', '=', id).executeTakeFirst()

/** Locks the row until the transaction ends. A box and a workspace are locked before an environment, never after it. */
export const lockEnvironment = (trx: Trx, id: string): Promise<EnvironmentRow | undefined> =>
  forUpdate(trx, trx.selectFrom('environments').selectAll().where('id', '=', id)).executeTakeFirst()

/** Live environments only. */
export const lockEnvironmentByName = (
  trx: Trx,
  workspaceId: string,
  name: string,
): Promise<EnvironmentRow | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('environments')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('name', '=', name)
      .where('deleted_at', 'is', null),
  ).executeTakeFirst()

export const lockDefaultEnvironment = (trx: Trx, workspaceId: string): Promise<EnvironmentRow | undefined> =>
  forUpdate(
    trx,
    trx
      .selectFrom('environments')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('is_default', '=', 1),
  ).executeTakeFirst()

export type EnvironmentWithConfig = EnvironmentRow & Pick<EnvironmentVersionRow, 'config'>

const selectWithConfig = (db: Db | Trx) =>
  db
    .selectFrom('environments')
    .innerJoin('environment_versions', (join) =>
      join
        .onRef('environment_versions.environment_id', '=', 'environments.id')
        .onRef('environment_versions.version_no', '=', 'environments.latest_version_no'),
    )
    .selectAll('environments')
    .select('environment_versions.config')

/**
 * A page of the live environments of a workspace with their latest configurations, in the order of their names.
 * @param after the last name of the page before
 */
export const listEnvironments = (
  db: Db,
  workspaceId: string,
  { after, limit }: { after: string; limit: number },
): Promise<EnvironmentWithConfig[]> =>
  selectWithConfig(db)
    .where('environments.workspace_id', '=', workspaceId)
    .where('environments.deleted_at', 'is', null)
    .where('environments.name', '>', after)
    .orderBy('environments.name')
    .limit(limit)
    .execute()

/** The latest configurations of the live environments of all workspaces. */
export const listLatestConfigs = async (db: Db): Promise<string[]> =>
  (await selectWithConfig(db).where('environments.deleted_at', 'is', null).execute()).map(
    ({ config }) => config,
  )

/** The caller has locked the workspace, so that concurrent requests do not exceed the limit. */
export async function countEnvironments(trx: Trx, workspaceId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('environments')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export const insertEnvironment = (trx: Trx, row: EnvironmentRow) =>
  trx.insertInto('environments').values(row).execute()

export const updateEnvironment = (
  trx: Trx,
  id: string,
  changes: Updateable<EnvironmentRow>,
): Promise<EnvironmentRow> =>
  trx.updateTable('environments').set(changes).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

export const deleteEnvironment = (trx: Trx, id: string) =>
  trx.deleteFrom('environments').where('id', '=', id).execute()

/** The environments of all workspaces, also deleted ones, in the order of their ids. @param after the last id of the page before */
export const listEnvironmentsAfter = (db: Db, after: string, limit: number) =>
  db
    .selectFrom('environments')
    .select(['id', 'latest_version_no', 'deleted_at'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
