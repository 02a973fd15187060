// Creates, changes and deletes environments.
import { homedir } from 'node:os'
import { basename } from 'node:path'
import type {
  CreateEnvironmentRequest,
  Environment,
  EnvironmentFileInput,
  EnvironmentRepo,
  EnvironmentToggles,
  UpgradedEnvironment,
} from '../../shared/api/environments.ts'
import { isEnvName, type JsonOption, type QuietOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { addHints } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import { readEnvFile, type Variables } from '../env/env-file.ts'
import { suggestSecret } from '../env/suggest-secret.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { formatToggles } from './environment-list.ts'
import { findEnvironment, loadEnvironments } from './find-environment.ts'
import { readLocalFile } from './read-local-file.ts'

export type Output = JsonOption & QuietOption
/** A later coordinator may send other reasons. */
const SKIP_REASONS: Record<string, string> = {
  up_to_date: 'it uses the latest version',
  box_failed: 'it could not be provisioned; delete it',
  terminating: 'it is being deleted',
}

type Response = { environment: Environment }

export const find = async (client: Client, typed: string): Promise<Environment> =>
  findEnvironment(await loadEnvironments(client), typed)

export type CreateOptions = Output & {
  description?: string
  default?: boolean
  env?: Variables
  file?: string[]
  repo?: string[]
  image?: string
} & Partial<EnvironmentToggles>

export async function createEnvironment(
  { client }: Session,
  name: string,
  options: CreateOptions,
): Promise<undefined> {
  const { description, default: isDefault, env = {}, file = [], repo = [], image, json, quiet } = options
  const { restricted, git, cloud, codingAgents } = options
  const vars = Object.assign({}, ...file.map(readEnvFile), env)
  const request: CreateEnvironmentRequest = {
    name,
    vars,
    repos: repo.map((url) => ({ repo: requireHttps(url) })),
    toggles: {
      ...(restricted && { restricted }),
      ...(git && { git }),
      ...(cloud && { cloud }),
      ...(codingAgents && { codingAgents }),
    },
    ...(image !== undefined && { image }),
    ...(description !== undefined && { description }),
    ...(isDefault && { isDefault }),
  }
  const response = client.request<Response>('POST', '/environments', request)
  const { environment } = await addHints(response, {
    environment_limit: '`box environments rm` deletes environments.',
  })
  if (json) return void printJson(environment)
  if (quiet) return
  const use = environment.isDefault
    ? 'new boxes get it'
    : `\`${boxCommand()} create --environment ${environment.name}\` creates a box with it`
  printStderr(`${environment.name}: created; ${use}.`)
  suggestSecret(Object.keys(vars), formatSecretCommands)
}

export type SetOptions = Output & { file?: string[]; image?: string; name?: string; description?: string }

/** One variable is set by a request of its own; everything else is replaced by one request, and so one version. */
export async function setEnvironment(
  { client }: Session,
  typed: string,
  words: readonly string[],
  options: SetOptions,
): Promise<undefined> {
  const { file = [], image, name, description } = options
  const changed: Variables = Object.assign({}, ...file.map(readEnvFile), ...words.map(parseAssignment))
  const names = Object.keys(changed)
  const hasFields = [image, name, description].some((value) => value !== undefined)
  if (names.length === 0 && !hasFields)
    throw new CliError(
      EXIT.usage,
      'Nothing to set. Use NAME=VALUE, --file, --image, --name or --description.',
    )
  const before = await find(client, typed)
  const path = `/environments/${before.id}`
  const [only = ''] = names
  const isSingle = names.length === 1 && !hasFields
  const { environment } = isSingle
    ? await client.request<Response>('POST', `${path}/vars`, { name: only, value: changed[only] })
    : await client.request<Response>('PATCH', path, {
        ...(names.length > 0 && { vars: { ...toVariables(before), ...changed } }),
        ...(image !== undefined && { image: image === '' ? null : image }),
        ...(name !== undefined && { name }),
        ...(description !== undefined && { description: description === '' ? null : description }),
      })
  printChange(before, environment, options)
  if (!options.json && !options.quiet) suggestSecret(names, formatSecretCommands)
}

const formatSecretCommands = (name: string): string =>
  `\`box secrets set ${name}\` and \`box mount BOX ${name}\``

const toVariables = ({ vars }: Environment): Variables =>
  Object.fromEntries(vars.map(({ name, value }) => [name, value]))

function parseAssignment(word: string): Variables {
  const [name = '', ...rest] = word.split('=')
  if (word.includes('=') && isEnvName(name)) return { [name]: rest.join('=') }
  throw new CliError(EXIT.usage, `'${sanitize(word)}' must be NAME=VALUE.`)
}

export async function unsetVariables(
  { client }: Session,
  typed: string,
  names: readonly string[],
  options: Output,
): Promise<undefined> {
  const before = await find(client, typed)
  const vars = toVariables(before)
  for (const name of names) {
    if (!Object.hasOwn(vars, name))
      throw new CliError(EXIT.notFound, `${sanitize(name)} is not set in ${before.name}.`, {
        code: 'no_such_variable',
      })
    delete vars[name]
  }
  const { environment } = await client.request<Response>('PATCH', `/environments/${before.id}`, { vars })
  printChange(before, environment, options)
}

export async function putFile(
  { client }: Session,
  typed: string,
  source: string,
  target: string | undefined,
  { mode, ...options }: Output & { mode?: string },
): Promise<undefined> {
  const before = await find(client, typed)
  if (target === undefined && source === '-')
    throw new CliError(EXIT.usage, 'Stdin has no name: add the path of the file on the boxes.')
  const path = toBoxPath(target ?? basename(source))
  const request: EnvironmentFileInput = {
    path,
    contentBase64: readLocalFile(source).toString('base64'),
    ...(mode !== undefined && { mode }),
  }
  const { environment } = await client.request<Response>('PUT', `/environments/${before.id}/files`, request)
  printChange(before, environment, options)
}

/** A relative path is below the home directory of the box, as in box cp. */
function toBoxPath(typed: string): string {
  const home = homedir()
  if (home.length > 1 && typed.startsWith(`${home}/`))
    printMessage(
      `${sanitize(typed)} is in your home directory on this machine; if your shell has replaced ~, write the path without ~/.`,
    )
  return /^(\/|~\/)/.test(typed) ? typed : `~/${typed}`
}

export async function removeFiles(
  { client }: Session,
  typed: string,
  paths: readonly string[],
  options: Output,
): Promise<undefined> {
  const before = await find(client, typed)
  const found = paths.map((path) => {
    const file = before.files.find((candidate) => candidate.path === path || candidate.path === `~/${path}`)
    if (file !== undefined) return file.path
    throw new CliError(EXIT.notFound, `${before.name} has no file '${sanitize(path)}'.`, {
      code: 'no_such_file',
    })
  })
  for (const path of new Set(found))
    await client.request('DELETE', `/environments/${before.id}/files?${new URLSearchParams({ path })}`)
  printChange(before, await find(client, before.id), options)
}

export async function addRepo(
  { client }: Session,
  typed: string,
  repo: string,
  { path, ref, secret, ...options }: Output & Omit<EnvironmentRepo, 'repo'>,
): Promise<undefined> {
  const before = await find(client, typed)
  const request: EnvironmentRepo = {
    repo: requireHttps(repo),
    ...(path !== undefined && { path: toBoxPath(path) }),
    ...(ref !== undefined && { ref }),
    ...(secret !== undefined && { secret }),
  }
  const { environment } = await client.request<Response>('POST', `/environments/${before.id}/repos`, request)
  printChange(before, environment, options)
}

/** Boxes clone with the token of a secret instead of an SSH key. @throws CliError for an address of SSH */
function requireHttps(repo: string): string {
  const [, host, path] = /^(?:ssh:\/\/)?[\w.-]+@([\w.-]+)(?::\d+\/|[:/])(.+)$/.exec(repo) ?? []
  if (host === undefined || path === undefined) return repo
  throw new CliError(
    EXIT.usage,
    `Boxes have no key for SSH. Use ${sanitize(`https://${host}/${path.replace(/^\/+/, '')}`)}; for a private repository, \`box environments repo add ENVIRONMENT URL --secret GITHUB_TOKEN\`.`,
  )
}

export async function removeRepo(
  { client }: Session,
  typed: string,
  repo: string,
  options: Output,
): Promise<undefined> {
  const before = await find(client, typed)
  if (!before.repos.some((candidate) => candidate.repo === repo))
    throw new CliError(EXIT.notFound, `${before.name} has no repository '${sanitize(repo)}'.`, {
      code: 'no_such_repo',
    })
  await client.request('DELETE', `/environments/${before.id}/repos?${new URLSearchParams({ repo })}`)
  printChange(before, await find(client, before.id), options)
}

export async function toggle(
  { client }: Session,
  typed: string,
  name: keyof EnvironmentToggles,
  state: 'on' | 'off',
  options: Output,
): Promise<undefined> {
  const before = await find(client, typed)
  const request = { [name]: state === 'on' }
  const { environment } = await client.request<Response>(
    'POST',
    `/environments/${before.id}/toggles`,
    request,
  )
  if (!options.json && !options.quiet)
    printStderr(`${environment.name}: toggles ${formatToggles(environment)}`)
  printChange(before, environment, options)
}

export async function makeDefault(
  { client }: Session,
  typed: string,
  { json, quiet }: Output,
): Promise<undefined> {
  const { id } = await find(client, typed)
  const { environment } = await client.request<Response>('POST', `/environments/${id}/default`)
  if (json) printJson(environment)
  else if (!quiet) printStderr(`${environment.name}: new boxes get it`)
}

/** Boxes keep their version until an upgrade. */
function printChange(before: Environment, after: Environment, { json, quiet }: Output): void {
  if (json) printJson(after)
  if (json || quiet) return
  const { name, latestVersionNo, boxCount } = after
  if (latestVersionNo === before.latestVersionNo) {
    printStderr(`${name}: no new version${name === before.name ? '' : `; it was ${before.name}`}`)
    return
  }
  const boxes = boxCount === 1 ? '1 box keeps its' : `${boxCount} boxes keep their`
  const hint =
    boxCount === 0 ? '' : `; ${boxes} version until \`${boxCommand()} environments upgrade ${name}\``
  printStderr(`${name}: version ${latestVersionNo}${hint}`)
}

/** Returns the exit code. */
export async function deleteEnvironments(
  { client, signal }: Session,
  typed: string[],
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  const batch = startBatch(typed)
  const all = await loadEnvironments(client)
  const found = await batch.run([...new Set(typed)], async (text) => findEnvironment(all, text))
  if (found.length === 0) return batch.exitCode
  const question = `Delete ${found.map(({ name }) => name).join(', ')}? Boxes keep their version.`
  if (!yes && canAsk(json ?? false) && !(await confirm(question, signal))) {
    printMessage('nothing was deleted.')
    return EXIT.failed
  }
  await batch.run(found, async ({ id, name, isDefault }) => {
    await client.request('DELETE', `/environments/${id}`)
    if (json) printJson({ id, name, deleted: true })
    else if (!quiet) printStderr(`${name}: deleted${isDefault ? '; new boxes get no environment' : ''}`)
  })
  return batch.exitCode
}

export async function upgradeBoxes(
  { client }: Session,
  typed: string,
  { json, quiet }: Output,
): Promise<undefined> {
  const { id, name } = await find(client, typed)
  const response = await client.request<UpgradedEnvironment>('POST', `/environments/${id}/upgrade`)
  if (json) return void printJson(response)
  if (quiet) return
  const { upgraded, skipped, latestVersionNo } = response
  for (const { hostname, versionNo } of upgraded)
    printStderr(`${hostname}: version ${latestVersionNo} instead of ${versionNo}`)
  for (const { hostname, reason } of skipped)
    printStderr(`${hostname}: skipped: ${SKIP_REASONS[reason] ?? reason}`)
  if (upgraded.length + skipped.length === 0) printStderr(`No box uses ${name}.`)
  else if (upgraded.length > 0)
    printStderr('Running boxes get the files and variables now, the others when they start.')
}
