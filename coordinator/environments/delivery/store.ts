// Queries on the repositories of boxes.
import type { Updateable } from 'kysely'
import type { Db } from '../../db/open.ts'
import type { BoxRepoRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'

export const listBoxRepos = (db: Db | Trx, boxId: string): Promise<BoxRepoRow[]> =>
  db.selectFrom('box_repos').selectAll().where('box_id', '=', boxId).orderBy('repo').execute()

/** Inserts the row, or replaces the one of the same repository. */
export async function upsertBoxRepo(trx: Trx, row: BoxRepoRow): Promise<void> {
  const { box_id: _boxId, repo: _repo, ...changes } = row
  await trx
    .insertInto('box_repos')
    .values(row)
    .onConflict((conflict) => conflict.columns(['box_id', 'repo']).doUpdateSet(changes))
    .execute()
}

export const deleteBoxRepo = (trx: Trx, boxId: string, repo: string) =>
  trx.deleteFrom('box_repos').where('box_id', '=', boxId).where('repo', '=', repo).execute()

export const deleteReposOfBox = (trx: Trx, boxId: string) =>
  trx.deleteFrom('box_repos').where('box_id', '=', boxId).execute()

/** The repositories of a box that are to be cloned or updated. */
export const listUnfinishedRepos = (db: Db, boxId: string): Promise<BoxRepoRow[]> =>
  db
    .selectFrom('box_repos')
    .selectAll()
    .where('box_id', '=', boxId)
    .where('state', 'in', ['pending', 'cloning'])
    .orderBy('repo')
    .execute()

/** No-op when the state is another one, or the repository has been removed. @returns whether the row was written */
export async function updateBoxRepo(
  trx: Trx,
  { box_id: boxId, repo }: Pick<BoxRepoRow, 'box_id' | 'repo'>,
  from: readonly BoxRepoRow['state'][],
  changes: Updateable<BoxRepoRow>,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('box_repos')
    .set(changes)
    .where('box_id', '=', boxId)
    .where('repo', '=', repo)
    .where('state', 'in', from)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Those in progress stay as they are. */
export const requestRepoUpdates = (trx: Trx, boxId: string, now: number) =>
  trx
    .updateTable('box_repos')
    .set({ state: 'pending', error: null, updated_at: now })
    .where('box_id', '=', boxId)
    .where('state', 'in', ['ready', 'failed'])
    .execute()
