// The environments: their boxes and versions, and the form that creates or changes one.
import type { Box } from '../../shared/api/boxes.ts'
import type {
  CreateEnvironmentRequest,
  Environment,
  EnvironmentToggles,
  PatchEnvironmentRequest,
} from '../../shared/api/environments.ts'
import { formatCommandLine } from './command-line.ts'
import type { Boxes } from './items.ts'

type Values = Record<string, string>

/** The toggles with their labels. */
export const TOGGLES: Record<keyof EnvironmentToggles, string> = {
  restricted: 'restricted: for third parties, without secrets',
  git: 'git: the git tokens of the workspace',
  cloud: 'cloud: the tokens of cloud providers',
  codingAgents: 'codingAgents: the keys of coding agents',
}
export const TOGGLE_NAMES = Object.keys(TOGGLES) as (keyof EnvironmentToggles)[]
/** The options of `box environments create`. */
const TOGGLE_OPTIONS: Record<keyof EnvironmentToggles, string> = {
  restricted: '--restricted',
  git: '--git',
  cloud: '--cloud',
  codingAgents: '--coding-agents',
}

/** The boxes that have a version of the environment, by name. */
export const listEnvironmentBoxes = (boxes: Boxes, { id }: Pick<Environment, 'id'>): Box[] =>
  [...boxes.values()]
    .filter(({ environmentId }) => environmentId === id)
    .sort((a, b) => (a.hostname < b.hostname ? -1 : 1))

export const listToggles = (toggles: EnvironmentToggles): string[] =>
  TOGGLE_NAMES.filter((name) => toggles[name])

const splitLines = (text = ''): string[] => text.split('\n').filter((line) => line.trim() !== '')

/** One NAME=VALUE per line. Null: a line is not one. */
export function parseVariables(text = ''): Record<string, string> | null {
  const variables = splitLines(text).map((line) => /^\s*([A-Za-z_]\w*)=(.*)$/.exec(line))
  if (variables.includes(null)) return null
  return Object.fromEntries(variables.map((match) => [match?.[1] ?? '', match?.[2] ?? '']))
}

/** The text for a form; null: a value has several lines, and is no line of a form. */
export const formatVariables = (vars: Environment['vars']): string | null =>
  vars.some(({ value }) => /[\r\n]/.test(value))
    ? null
    : vars.map(({ name, value }) => `${name}=${value}`).join('\n')

export const acceptsEnvironment = ({ name, vars }: Values): boolean =>
  Boolean(name) && parseVariables(vars) !== null

const parseToggles = (text: string | undefined): EnvironmentToggles => {
  const chosen = splitLines(text)
  return {
    restricted: chosen.includes('restricted'),
    git: chosen.includes('git'),
    cloud: chosen.includes('cloud'),
    codingAgents: chosen.includes('codingAgents'),
  }
}

export function toCreateRequest(values: Values): CreateEnvironmentRequest {
  const { name = '', description, image, isDefault } = values
  const repos = splitLines(values.repos).map((repo) => ({ repo: repo.trim() }))
  return {
    name,
    ...(description && { description }),
    ...(image && { image }),
    ...(isDefault && { isDefault: true }),
    vars: parseVariables(values.vars) ?? {},
    ...(repos.length > 0 && { repos }),
    toggles: parseToggles(values.toggles),
  }
}

export function formatCreateCommand(values: Values): string {
  const { name, description, image, isDefault } = values
  const vars = parseVariables(values.vars) ?? {}
  const toggles = parseToggles(values.toggles)
  return formatCommandLine(
    ...['box', 'environments', 'create', name || 'NAME'],
    ...Object.entries(vars).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
    ...splitLines(values.repos).flatMap((repo) => ['--repo', repo.trim()]),
    ...(image ? ['--image', image] : []),
    ...listToggles(toggles).map((toggle) => TOGGLE_OPTIONS[toggle as keyof EnvironmentToggles]),
    ...(description ? ['--description', description] : []),
    isDefault && '--default',
  )
}

/** What the form of a change shows. Variables are left out when a value has several lines. */
export function toFormValues({ name, description, image, vars, toggles }: Environment): Values {
  const text = formatVariables(vars)
  return {
    name,
    description: description ?? '',
    image: image ?? '',
    ...(text !== null && { vars: text }),
    toggles: listToggles(toggles).join('\n'),
  }
}

/** The changed fields only. Null: nothing has changed. */
export function toPatchRequest(environment: Environment, values: Values): PatchEnvironmentRequest | null {
  const before = toFormValues(environment)
  const isChanged = (field: string) => values[field] !== undefined && values[field] !== before[field]
  const after = parseToggles(values.toggles)
  const request: PatchEnvironmentRequest = {
    ...(isChanged('name') && { name: values.name ?? '' }),
    ...(isChanged('description') && { description: values.description || null }),
    ...(isChanged('image') && { image: values.image || null }),
    ...(isChanged('vars') && { vars: parseVariables(values.vars) ?? {} }),
    ...(listChangedToggles(environment, values).length > 0 && { toggles: after }),
  }
  return Object.keys(request).length === 0 ? null : request
}

const listChangedToggles = ({ toggles }: Environment, values: Values) => {
  const after = parseToggles(values.toggles)
  return TOGGLE_NAMES.filter((name) => after[name] !== toggles[name]).map((name) => ({
    name,
    isOn: after[name],
  }))
}

/** The commands that make the change, each of which the command line makes on its own. */
export function formatChangeCommand(environment: Environment, values: Values): string {
  const request = toPatchRequest(environment, values)
  if (request === null) return formatCommandLine('box', 'environments', 'show', environment.name)
  const { name } = environment
  const before = new Map(environment.vars.map((variable) => [variable.name, variable.value]))
  const after = request.vars ?? null
  const changed = Object.entries(after ?? {}).filter(([key, value]) => before.get(key) !== value)
  const removed = after === null ? [] : [...before.keys()].filter((key) => !Object.hasOwn(after, key))
  // formatCommandLine() leaves out empty words, which remove a value here.
  const option = (label: string, value: string | null | undefined) =>
    value === undefined ? '' : ` ${label} ${value ? formatCommandLine(value) : "''"}`
  const options = `${option('--image', request.image)}${option('--description', request.description)}${option('--name', request.name)}`
  const set = formatCommandLine(...changed.map(([key, value]) => `${key}=${value}`))
  return [
    removed.length > 0 && formatCommandLine('box', 'environments', 'unset', name, ...removed),
    ...listChangedToggles(environment, values).map((toggle) =>
      formatCommandLine('box', 'environments', 'toggle', name, toggle.name, toggle.isOn ? 'on' : 'off'),
    ),
    // The name changes last.
    (set !== '' || options !== '') &&
      `${formatCommandLine('box', 'environments', 'set', name)}${set && ` ${set}`}${options}`,
  ]
    .filter(Boolean)
    .join(' && ')
}
