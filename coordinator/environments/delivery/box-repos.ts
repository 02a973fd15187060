// The repositories that are cloned on a box: those of the version of its environment.
import type { EnvironmentRepo } from '../../../shared/api/environments.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { deleteBoxRepo, listBoxRepos, upsertBoxRepo } from './store.ts'

export { deleteReposOfBox } from './store.ts'

/** The URL that git clones, and the directory: `~/` and the last part of the URL, unless the environment names one. */
export function getRepoSource({ repo, path }: Pick<EnvironmentRepo, 'repo' | 'path'>): {
  url: string
  path: string
} {
  const name = repo
    .replace(/\/+$/, '')
    .replace(/^.*\//, '')
    .replace(/\.git$/, '')
  return {
    url: repo.startsWith('https://') ? repo : `https://github.com/${repo}`,
    path: path ?? `~/${name || 'repository'}`,
  }
}

/**
 * Records the repositories of a box: new and changed ones are pending, and those that are not in the list are forgotten. Their
 * directories stay.
 */
export async function setBoxRepos(
  trx: Trx,
  { id: boxId, workspace_id: workspaceId }: Pick<BoxRow, 'id' | 'workspace_id'>,
  repos: readonly EnvironmentRepo[],
  now: number,
): Promise<void> {
  const existing = new Map((await listBoxRepos(trx, boxId)).map((row) => [row.repo, row]))
  for (const { repo, path, ref = null, secret = null } of repos) {
    const row = existing.get(repo)
    existing.delete(repo)
    const target = getRepoSource({ repo, path }).path
    if (row && row.path === target && row.ref === ref && row.secret === secret) continue
    await upsertBoxRepo(trx, {
      box_id: boxId,
      workspace_id: workspaceId,
      repo,
      path: target,
      ref,
      secret,
      state: 'pending',
      commit_id: null,
      error: null,
      updated_at: now,
    })
  }
  for (const repo of existing.keys()) await deleteBoxRepo(trx, boxId, repo)
}
