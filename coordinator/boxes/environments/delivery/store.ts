// Queries on the repositories of boxes.
import type { BoxRepoRow } from '../../../db/schema.ts'
import type { Trx } from '../../../db/transaction.ts'

export const listBoxRepos = (trx: Trx, boxId: string): Promise<BoxRepoRow[]> =>
  trx.selectFrom('box_repos').selectAll().where('box_id', '=', boxId).orderBy('repo').execute()

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
