// The configuration of a version of an environment. Pure functions.
import { isDeepStrictEqual } from 'node:util'
import type { EnvironmentRepo, EnvironmentToggles } from '../../shared/api/environments.ts'
import { NO_TOGGLES } from '../../shared/api/environments.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { AuditDetail } from '../audit/service.ts'
import { serializeEnvVars } from '../boxes/create.ts'
import type { EnvVar } from '../boxes/present.ts'
import { getRepoSource } from './delivery/box-repos.ts'

/** A file of a version. Versions that have the file unchanged refer to the same content. */
export type ConfigFile = {
  path: string
  /** Four octal digits. */
  mode: string
  /** The row of environment_files with the content. */
  fileId: string
  /** Bytes. */
  size: number
  /** Milliseconds since the epoch. */
  updatedAt: number
}

export type EnvironmentConfig = {
  /** In the order of their names. */
  vars: readonly EnvVar[]
  /** In the order of their paths. */
  files: readonly ConfigFile[]
  /** In the order in which they are cloned. */
  repos: readonly EnvironmentRepo[]
  /** The image of new boxes; null: none. */
  image: string | null
  toggles: EnvironmentToggles
}

export const EMPTY_CONFIG: EnvironmentConfig = {
  vars: [],
  files: [],
  repos: [],
  image: null,
  toggles: NO_TOGGLES,
}

/** Does not validate: the coordinator wrote the text. Versions that were written before the field image existed have none. */
export const parseConfig = (text: string): EnvironmentConfig => ({
  ...EMPTY_CONFIG,
  ...(JSON.parse(text) as Partial<EnvironmentConfig>),
})

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
export const sortVars = (vars: readonly EnvVar[]): EnvVar[] =>
  vars.toSorted((a, b) => compare(a.name, b.name))
export const sortFiles = (files: readonly ConfigFile[]): ConfigFile[] =>
  files.toSorted((a, b) => compare(a.path, b.path))
export const toVars = (record: Record<string, string>): EnvVar[] =>
  sortVars(Object.entries(record).map(([name, value]) => ({ name, value })))

export const setVar = (config: EnvironmentConfig, { name, value }: EnvVar): EnvironmentConfig => ({
  ...config,
  vars: sortVars([...config.vars.filter((other) => other.name !== name), { name, value }]),
})

/** A repository that exists keeps its position in the order. */
export function setRepo(config: EnvironmentConfig, repo: EnvironmentRepo): EnvironmentConfig {
  const exists = config.repos.some((other) => other.repo === repo.repo)
  const repos = exists
    ? config.repos.map((other) => (other.repo === repo.repo ? repo : other))
    : [...config.repos, repo]
  return { ...config, repos }
}

/** @throws ApiError invalid_env, environment_too_large, or bad_request for files and repositories */
export function assertValid({ vars, files, repos }: EnvironmentConfig): void {
  serializeEnvVars(Object.fromEntries(vars.map(({ name, value }) => [name, value])))
  const { environmentFiles, environmentFilesBytes, environmentRepos } = LIMITS
  if (files.length > environmentFiles)
    throw new ApiError('bad_request', `files must have at most ${environmentFiles} entries`)
  if (files.reduce((sum, { size }) => sum + size, 0) > environmentFilesBytes)
    throw new ApiError(
      'environment_too_large',
      `The files are larger than ${environmentFilesBytes / 1024 ** 2} MiB in total. Remove or shorten some.`,
    )
  if (repos.length > environmentRepos)
    throw new ApiError('bad_request', `repos must have at most ${environmentRepos} entries`)
  assertDistinct(
    repos.map(({ repo }) => repo),
    'repos must not name a repository twice',
  )
  assertDistinct(
    repos.map((repo) => getRepoSource(repo).path),
    'repos must have different directories: set the path of one of them',
  )
  assertDistinct(
    files.map(({ path }) => path),
    'files must have different paths',
  )
}

function assertDistinct(values: readonly string[], rule: string): void {
  const repeated = values.find((value, index) => values.indexOf(value) !== index)
  if (repeated !== undefined) throw new ApiError('bad_request', `${rule} (${repeated})`)
}

/** The names of what differs, by kind. null: the configurations are equal. Never has values or contents. */
export function describeDifference(before: EnvironmentConfig, after: EnvironmentConfig): AuditDetail | null {
  const toggles = Object.keys(after.toggles) as (keyof EnvironmentToggles)[]
  const names = {
    vars: listDifferences(before.vars, after.vars, ({ name }) => name),
    files: listDifferences(before.files, after.files, ({ path }) => path),
    repos: listDifferences(before.repos, after.repos, ({ repo }) => repo),
    image: before.image === after.image ? [] : [after.image ?? 'none'],
    toggles: toggles.filter((name) => before.toggles[name] !== after.toggles[name]),
  }
  const changed = Object.entries(names).filter(([, list]) => list.length > 0)
  if (changed.length === 0) return null
  return Object.fromEntries(changed.map(([kind, list]) => [kind, formatNames(list)]))
}

function listDifferences<T>(
  before: readonly T[],
  after: readonly T[],
  getName: (item: T) => string,
): string[] {
  const [old, current] = [before, after].map((items) => new Map(items.map((item) => [getName(item), item])))
  const names = new Set([...(old?.keys() ?? []), ...(current?.keys() ?? [])])
  return [...names].filter((name) => !isDeepStrictEqual(old?.get(name), current?.get(name))).sort(compare)
}

const MAX_NAMES = 20

/** Audit events are short. */
export const formatNames = (names: readonly string[]): string =>
  names.length <= MAX_NAMES
    ? names.join(',')
    : `${names.slice(0, MAX_NAMES).join(',')} and ${names.length - MAX_NAMES} more`
