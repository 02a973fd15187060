// The list of environments, the list of the repositories of a box, and the details of one environment.
import type { BoxRepo, Environment, EnvironmentRepo } from '../../shared/api/environments.ts'
import { formatEnvLine } from '../env/env-file.ts'
import type { List } from '../lists/list.ts'
import { formatAge, formatBytes } from '../output/format.ts'
import { sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

const REPO_STATES: BoxRepo['state'][] = ['pending', 'cloning', 'ready', 'failed']

/** The toggles that are on, such as `git, cloud`. */
export const formatToggles = ({ toggles }: Pick<Environment, 'toggles'>): string =>
  Object.entries(toggles)
    .filter(([, isOn]) => isOn)
    .map(([name]) => name)
    .join(', ') || '-'

export const ENVIRONMENTS: List<Environment> = {
  columns: [
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'DEFAULT', cell: ({ isDefault }) => (isDefault ? 'yes' : '-') },
    { header: 'VERSION', cell: ({ latestVersionNo }) => String(latestVersionNo) },
    { header: 'BOXES', cell: ({ boxCount }) => String(boxCount) },
    { header: 'VARIABLES', cell: ({ vars }) => String(vars.length) },
    { header: 'FILES', cell: ({ files }) => String(files.length) },
    { header: 'REPOS', cell: ({ repos }) => String(repos.length) },
    { header: 'TOGGLES', cell: formatToggles },
    {
      header: 'CHANGED',
      cell: ({ updatedAt }, now) => `${formatAge(updatedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'IMAGE', cell: ({ image }) => image ?? '-', isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
    { header: 'DESCRIPTION', cell: ({ description }) => description ?? '-', isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ name }) => name,
  filters: {
    name: { get: ({ name }) => name },
    default: { get: ({ isDefault }) => (isDefault ? 'yes' : 'no'), values: ['yes', 'no'] },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching environments.' : 'No environments. `box environments create NAME` creates one.',
}

const SHORT_COMMIT_LENGTH = 10

export const BOX_REPOS: List<BoxRepo> = {
  columns: [
    { header: 'REPO', cell: ({ repo }) => repo },
    { header: 'PATH', cell: ({ path }) => path },
    { header: 'REF', cell: ({ ref }) => ref ?? '-' },
    { header: 'STATE', cell: ({ state }) => state },
    { header: 'COMMIT', cell: ({ commit }) => commit?.slice(0, SHORT_COMMIT_LENGTH) ?? '-' },
    {
      header: 'SINCE',
      cell: ({ updatedAt }, now) => `${formatAge(updatedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'ERROR', cell: ({ error }) => error ?? '' },
  ],
  getId: ({ path }) => path,
  getName: ({ path }) => path,
  filters: {
    repo: { get: ({ repo }) => repo },
    path: { get: ({ path }) => path },
    state: { get: ({ state }) => state, values: REPO_STATES },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? 'No matching repositories.'
      : 'The environment of the box has no repositories. `box environments repo add ENVIRONMENT REPO` adds one.',
}

/** The values of variables are configuration: keys belong in secrets. */
export function formatEnvironment(environment: Environment, now: number): string {
  const { name, id, description, isDefault, latestVersionNo, boxCount, vars, files, repos } = environment
  const rows = [
    ['name', name],
    ['id', id],
    ...(description === null ? [] : [['description', description]]),
    ['default', isDefault ? 'yes: new boxes get it' : 'no'],
    ['version', `${latestVersionNo}, changed ${formatAge(environment.updatedAt, now)} ago`],
    ['boxes', String(boxCount)],
    ['image', environment.image ?? 'none'],
    ['toggles', formatToggles(environment)],
  ]
  return [
    formatTable(rows),
    ...formatSection(
      'Variables:',
      vars.map((variable) => [formatEnvLine(variable.name, variable.value)]),
    ),
    ...formatSection(
      'Files:',
      files.map(({ path, mode, size, updatedAt }) => [
        path,
        mode,
        formatBytes(size),
        `${formatAge(updatedAt, now)} ago`,
      ]),
    ),
    ...formatSection('Repositories:', repos.map(formatRepo)),
  ].join('\n')
}

const formatSection = (title: string, rows: string[][]): string[] =>
  rows.length === 0
    ? []
    : [
        '',
        title,
        formatTable(rows.map((row) => row.map(sanitize)))
          .split('\n')
          .map((line) => `  ${line}`)
          .join('\n'),
      ]

const formatRepo = ({ repo, path, ref, secret }: EnvironmentRepo): string[] => [
  repo,
  path ?? '-',
  ref ?? 'default branch',
  secret === undefined ? 'public' : `with ${secret}`,
]
