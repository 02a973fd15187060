// Clones and updates the repositories of the environment of the box. The coordinator repeats a request after a restart: a
// repeated one waits for the clone in progress, and a complete clone stays as it is.
import { createHash } from 'node:crypto'
import { lstat, readdir, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import pLimit from 'p-limit'
import type { AgentRepoRequest, AgentRepoResponse } from '../../shared/api/environment-delivery.ts'
import { ApiError } from '../../shared/errors.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { createParents } from '../files/create-parents.ts'
import { toFileError } from '../files/errors.ts'
import { nullIfMissing, resolvePath } from '../files/paths.ts'
import { checkWritable } from '../files/state-access.ts'
import { RequestResetError } from '../requests/json-routes.ts'
import { type Git, GitError, GitInterruptedError, type GitRun } from './git.ts'
import { cloneSubmodules, hasSubmodules, readMoved, type Submodules, updateSubmodules } from './submodules.ts'

export type ReposOptions = {
  home: string
  /** Real path of the agent's state directory. */
  stateDir: string
  git: Git
  activity: Pick<ActivityTracker, 'startOperation'>
}

export type Repos = {
  /** @throws RequestResetError when git was terminated, because the box or the agent stops */
  ensure(request: AgentRepoRequest): Promise<AgentRepoResponse>
}

const MAX_CONCURRENT = 2

export function createRepos({ home, stateDir, git, activity }: ReposOptions): Repos {
  const limit = pLimit(MAX_CONCURRENT)
  const running = new Map<string, Promise<AgentRepoResponse>>()

  async function ensure(request: AgentRepoRequest, path: string): Promise<AgentRepoResponse> {
    const endOperation = activity.startOperation()
    try {
      await createParents(path, stateDir)
      // Paths in messages, and the name of the partial clone, do not depend on symbolic links.
      const target = join(await realpath(dirname(path)), basename(path))
      checkWritable(target, stateDir)
      const clone = { request, target, run: toRun(request, dirname(target)) }
      const exists = await isUsed(target)
      if (exists) {
        await assertCloneOf(git, clone)
        await storeHeader(git, clone)
      } else await cloneInto(git, clone)
      if (exists && request.update) await updateAll(git, clone)
      if (exists && !request.update) {
        // An earlier clone may have failed at a submodule.
        const failure = await cloneSubmodulesOf(git, clone)
        if (failure !== null) throw failure
      }
      return { commit: await readCommit(git, clone), isKept: exists && !request.update }
    } catch (error) {
      if (error instanceof GitInterruptedError) throw new RequestResetError()
      const cause = toFileError(error, request.path)
      if (cause instanceof GitError || cause instanceof ApiError) return { error: cause.message }
      throw error
    } finally {
      endOperation()
    }
  }

  return {
    ensure(request) {
      const path = resolvePath(home, request.path)
      const known = running.get(path)
      if (known !== undefined) return known
      const result = limit(() => ensure(request, path)).finally(() => running.delete(path))
      running.set(path, result)
      return result
    },
  }
}

type Clone = {
  request: AgentRepoRequest
  /** The directory. Its parent exists. */
  target: string
  run: GitRun
}

function toRun({ url, password, env }: AgentRepoRequest, cwd: string): GitRun {
  const header = password === null ? null : toHeaderSetting(url, password)
  return {
    cwd,
    // Git must not use a repository above the directory.
    env: { ...env, GIT_CEILING_DIRECTORIES: cwd },
    // The first setting removes the header of an earlier clone, which git would send too.
    ...(header && { config: [[header[0], ''], header] }),
  }
}

const toHeaderSetting = (url: string, password: string): readonly [name: string, value: string] => [
  `http.${new URL(url).origin}/.extraHeader`,
  `Authorization: Basic ${Buffer.from(`x-access-token:${password}`).toString('base64')}`,
]

/** Whether there is anything but an empty directory. */
async function isUsed(target: string): Promise<boolean> {
  const stats = await nullIfMissing(lstat(target))
  if (stats === null) return false
  return !stats.isDirectory() || (await readdir(target)).length > 0
}

/** @throws GitError */
async function assertCloneOf(git: Git, { request, target, run }: Clone): Promise<void> {
  const origin = await git.run(['-C', target, 'remote', 'get-url', 'origin'], run).catch(toNull)
  if (origin !== null && toComparable(origin) === toComparable(request.url)) return
  throw new GitError(
    `${request.path} exists and is not a clone of the repository. Move it to another place, and update the repositories again`,
  )
}

/** GitHub and others ignore the suffix and a final slash. */
const toComparable = (url: string): string => url.replace(/\/+$/, '').replace(/\.git$/, '')

/** The clone gets its name when it is complete. */
async function cloneInto(git: Git, { request, target, run }: Clone): Promise<void> {
  const { url, ref } = request
  const hash = createHash('sha256').update(target).digest('hex').slice(0, 16)
  const partial = join(dirname(target), `.boxwood-clone-${hash}`)
  const remove = () => rm(partial, { recursive: true, force: true, maxRetries: 3 })
  // A killed agent has left it.
  await remove()
  try {
    await git.run(['clone', '--quiet', ...(ref === null ? [] : ['--no-checkout']), '--', url, partial], run)
    if (ref !== null) await checkOut(git, partial, ref, run)
    await storeHeader(git, { request, target: partial, run })
    const failure = await cloneSubmodulesOf(git, { request, target: partial, run })
    await rename(partial, target)
    if (failure !== null) throw failure
  } finally {
    await remove()
  }
}

/** Returns the failure: the repository is of use without its submodules. */
async function cloneSubmodulesOf(git: Git, clone: Clone): Promise<GitError | null> {
  if (!(await hasSubmodules(clone.target))) return null
  try {
    await cloneSubmodules(toSubmodules(git, clone))
    return null
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    return new GitError(`the repository is cloned, but not all of its submodules: ${error.message}`)
  }
}

function toSubmodules(git: Git, { request: { url, password }, target, run }: Clone): Submodules {
  return { git, target, run, header: password === null ? null : toHeaderSetting(url, password) }
}

/** The pulls of the user need the header too. It has the placeholder of a secret, which is no secret. */
async function storeHeader(git: Git, { request: { url, password }, target, run }: Clone): Promise<void> {
  if (password === null) return
  await git.run(['-C', target, 'config', '--replace-all', ...toHeaderSetting(url, password)], run)
}

async function checkOut(git: Git, dir: string, ref: string, run: GitRun): Promise<void> {
  try {
    await git.run(['-C', dir, 'checkout', '--quiet', ref, '--'], run)
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    // A commit of no branch and no tag. Where the server does not have it either, the first message is the better one.
    await git.run(['-C', dir, 'fetch', '--quiet', 'origin', ref], run).catch(() => {
      throw error
    })
    await git.run(['-C', dir, 'checkout', '--quiet', '--detach', 'FETCH_HEAD'], run)
  }
}

async function updateAll(git: Git, clone: Clone): Promise<void> {
  const submodules = toSubmodules(git, clone)
  const moved = (await hasSubmodules(clone.target)) ? await readMoved(submodules) : new Map<string, string>()
  await update(git, clone)
  if (await hasSubmodules(clone.target)) await updateSubmodules(submodules, moved)
}

/** Git refuses what would overwrite changes of the user, and commits that are not on the remote branch. */
async function update(git: Git, { request, target, run }: Clone): Promise<void> {
  await git.run(['-C', target, 'fetch', '--quiet', 'origin'], run)
  if (await isOnBranch(git, target, run))
    await git.run(['-C', target, 'merge', '--quiet', '--ff-only', '@{upstream}'], run)
  else if (request.ref === null)
    throw new GitError('no branch is checked out. Check out a branch, and update the repositories again')
  else if (!(await isAt(git, target, request.ref, run))) {
    await assertReferenced(git, target, run)
    await checkOut(git, target, request.ref, run)
  }
}

/** Whether the reference is checked out already. */
async function isAt(git: Git, target: string, ref: string, run: GitRun): Promise<boolean> {
  const parse = (name: string) =>
    git.run(['-C', target, 'rev-parse', '--quiet', '--verify', `${name}^{commit}`], run).catch(toNull)
  const [head, commit] = await Promise.all([parse('HEAD'), parse(ref)])
  return head !== null && head === commit
}

/** A commit of the user that no branch and no tag has would be lost. @throws GitError */
async function assertReferenced(git: Git, target: string, run: GitRun): Promise<void> {
  const refs = await git.run(['-C', target, 'for-each-ref', '--contains', 'HEAD', '--count=1'], run)
  if (refs === '')
    throw new GitError(
      'the checked-out commit is on no branch and no tag. Create a branch for it, and update the repositories again',
    )
}

/** A failure of git is a normal result; an interruption is not. */
function toNull(error: unknown): null {
  if (error instanceof GitError) return null
  throw error
}

const isOnBranch = async (git: Git, target: string, run: GitRun): Promise<boolean> =>
  (await git.run(['-C', target, 'symbolic-ref', '--quiet', 'HEAD'], run).catch(toNull)) !== null

/** null: the repository has no commit. */
const readCommit = (git: Git, { target, run }: Clone): Promise<string | null> =>
  git.run(['-C', target, 'rev-parse', '--quiet', '--verify', 'HEAD'], run).catch(toNull)
