// Clones and updates the submodules of a repository. The setting of the password has the origin of the repository in its name:
// git sends it to submodules of the same origin, and to no other host. Git uses the protocols of GIT_ALLOW_PROTOCOL only.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { shellQuote } from '../../shared/shell-quote.ts'
import { nullIfMissing } from '../files/paths.ts'
import { type Git, GitError, type GitRun } from './git.ts'

export type Submodules = {
  git: Git
  /** The directory of the repository. */
  target: string
  run: GitRun
  /** A setting that later pulls in a submodule need too. null: none. */
  header: readonly [name: string, value: string] | null
}

/** By its path in the repository: the commit that the repository records. */
type Recorded = Map<string, string>

export const hasSubmodules = async (target: string): Promise<boolean> =>
  (await nullIfMissing(lstat(join(target, '.gitmodules')))) !== null

/** Clones the submodules that are missing, as all are in a new clone. @throws GitError */
export async function cloneSubmodules(submodules: Submodules): Promise<void> {
  const missing = (await readStatus(submodules)).filter(({ state }) => state === '-')
  await checkOut(
    submodules,
    missing.map(({ path }) => path),
  )
}

/**
 * Checks out the recorded commits after an update of the repository. A submodule in which the user has checked out another
 * commit stays as it is.
 * @param before the result of readMoved() before the update @throws GitError when the repository records another commit for it
 */
export async function updateSubmodules(submodules: Submodules, before: Recorded): Promise<void> {
  const paths = [...(await readRecorded(submodules)).keys()]
  await checkOut(
    submodules,
    paths.filter((path) => !before.has(path)),
  )
  const recorded = await readRecorded(submodules)
  const outdated = [...before].filter(([path, commit]) => (recorded.get(path) ?? commit) !== commit)
  if (outdated.length > 0)
    throw new GitError(
      `in ${outdated.map(([path]) => path).join(', ')}, another commit is checked out than the one that the repository had. The submodule stays as it is. Check out a branch for your commits, and run git submodule update`,
    )
}

/** The submodules in which, or in a submodule of which, another commit is checked out than the recorded one. */
export async function readMoved(submodules: Submodules): Promise<Recorded> {
  const recorded = await readRecorded(submodules)
  const moved = (await readStatus(submodules, ['--recursive'])).filter(({ state }) => /[+U]/.test(state))
  return new Map(
    [...recorded].filter(([path]) => moved.some((other) => `${other.path}/`.startsWith(`${path}/`))),
  )
}

async function checkOut(submodules: Submodules, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  const { git, target, run, header } = submodules
  const options = ['--quiet', 'update', '--init', '--recursive']
  await git.run(['-C', target, 'submodule', ...options, '--', ...paths], run)
  if (header === null) return
  const command = ['git', 'config', '--replace-all', ...header].map(shellQuote).join(' ')
  await git.run(['-C', target, 'submodule', '--quiet', 'foreach', '--recursive', command], run)
}

type Status = {
  /** -: not cloned. +: another commit is checked out. U: conflicts. */
  state: string
  path: string
  commit: string
}

async function readStatus({ git, target, run }: Submodules, options: string[] = []): Promise<Status[]> {
  const output = await git.run(['-C', target, 'submodule', 'status', ...options], run)
  // The output is trimmed: the first line may have lost its space.
  const lines = output
    .split('\n')
    .map((line) => /^([-+U ]?)([0-9a-f]{40,64}) (.*?)(?: \([^()]*\))?$/.exec(line))
  return lines.flatMap((match) => {
    const [, state = '', commit = '', path = ''] = match ?? []
    return path === '' ? [] : [{ state, path, commit }]
  })
}

async function readRecorded(submodules: Submodules): Promise<Recorded> {
  const status = await readStatus(submodules, ['--cached'])
  return new Map(status.map(({ path, commit }) => [path, commit]))
}
