// Finds the coordinator's URL and credentials: in the environment, a profile, or a data directory on this machine.
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isMistypedApiKey } from '../../shared/api-key-checksum.ts'
import { findForeignControl } from '../../shared/foreign-directory.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { assertRunning } from './coordinator-record.ts'
import { getProfilePath, type Profile, type Profiles, readProfiles } from './profile-file.ts'
import { findLocalProfile, findProfileByOrigin, selectProfile } from './select-profile.ts'

export type Environment = Record<string, string | undefined>

export type CoordinatorConfig = {
  /** The control-plane address with its path prefix, such as `/api/v1`; no trailing slash. */
  baseUrl: string
  /** null: requests are authenticated by the session. */
  key: string | null
  /** The variable, file or profile that the URL came from, for error messages. */
  urlSource: string
  /** The variable, file or profile that the key came from, for error messages. */
  keySource: string
  /** The profile that the credentials came from. */
  profile?: Profile
  /** Throws unless the coordinator of the data directory that the URL came from runs. Called before each request. */
  assertRunning?(): void
}

/** The URL source of an argument. */
export const TYPED_URL = 'the URL'

type DataDir = { path: string; url: string | null; key: string | null }

const getStartHint = () =>
  `Start one with \`${boxCommand()} up\`, or sign in to another one with \`${boxCommand()} login URL\`.`

export const formatProfileSource = (name: string): string => `profile ${name}`

/**
 * `BOXWOOD_URL` and `BOXWOOD_API_KEY` take precedence, then the selected profile. Otherwise the data directory:
 * `BOXWOOD_DATA`, else `.boxwood` in `cwd`, else `.boxwood` in `projectDir`. The key of a profile or of a data directory
 * is sent to its own coordinator only.
 * @throws CliError
 */
export function findCoordinator(env: Environment, cwd: string, projectDir: string): CoordinatorConfig {
  const found = env.BOXWOOD_URL
    ? findByUrl(parseBaseUrl(env.BOXWOOD_URL), env, cwd, projectDir)
    : findSelected(env, cwd, projectDir)
  if (!env.BOXWOOD_API_KEY) return found
  // The session of a profile is not used: the user has chosen the key.
  const { profile: _, ...config } = found
  const keySource = 'BOXWOOD_API_KEY'
  return { ...config, key: parseKey(env.BOXWOOD_API_KEY, keySource), keySource }
}

function findByUrl(baseUrl: string, env: Environment, cwd: string, projectDir: string): CoordinatorConfig {
  const urlSource = 'BOXWOOD_URL'
  // The caller replaces this key.
  if (env.BOXWOOD_API_KEY) return { baseUrl, urlSource, key: null, keySource: '' }
  const profiles = readProfiles(getProfilePath(env))
  const profile = findProfileByOrigin(profiles, baseUrl, env.BOXWOOD_PROFILE || profiles.selected)
  if (profile?.isPreferred) return { ...fromProfile(profile.profile), baseUrl, urlSource }
  const dataDir = findDataDir(env, cwd, projectDir)
  if (dataDir !== null && dataDir.url !== null && isSameOrigin(dataDir.url, baseUrl)) {
    const config = fromDataDir(dataDir, profiles)
    if (config !== null) return { ...config, baseUrl, urlSource }
  }
  if (profile !== null) return { ...fromProfile(profile.profile), baseUrl, urlSource }
  const { origin } = new URL(baseUrl)
  throw new CliError(
    EXIT.notAuthenticated,
    `You are not signed in at ${origin}, the URL in BOXWOOD_URL.${describeLocal(dataDir)} Check BOXWOOD_URL. To sign in there, run \`${boxCommand()} login\`, or set BOXWOOD_API_KEY.`,
  )
}

/** Names the coordinator that runs on this machine: the URL may have a typing error. */
function describeLocal(dataDir: DataDir | null): string {
  if (dataDir === null || dataDir.url === null) return ''
  try {
    assertRunning(dataDir.path, dataDir.url)
  } catch {
    return ''
  }
  return ` The coordinator of this machine is at ${dataDir.url}.`
}

function findSelected(env: Environment, cwd: string, projectDir: string): CoordinatorConfig {
  const { profile } = selectProfile(env)
  if (profile !== null) return fromProfile(profile)
  const dataDir = findDataDir(env, cwd, projectDir)
  const baseUrl = getBaseUrl(dataDir, cwd, projectDir)
  const path = dataDir?.path ?? ''
  // The caller replaces this key.
  if (env.BOXWOOD_API_KEY)
    return { ...fromUrlFile(path, dataDir?.url ?? ''), baseUrl, key: null, keySource: '' }
  const config = dataDir === null ? null : fromDataDir(dataDir, readProfiles(getProfilePath(env)))
  if (config !== null) return config
  throw new CliError(
    EXIT.notAuthenticated,
    `No API key found in ${path}. Sign in with \`${boxCommand()} login\`, or set BOXWOOD_API_KEY.`,
  )
}

function fromProfile(profile: Profile): CoordinatorConfig {
  const source = formatProfileSource(profile.name)
  const { url, key, session } = profile
  if (key === undefined && session === undefined)
    throw new CliError(
      EXIT.notAuthenticated,
      `The ${source} has no credentials. Sign in with \`${boxCommand()} login --profile ${profile.name}\`.`,
    )
  return {
    baseUrl: parseBaseUrl(url, source),
    urlSource: source,
    key: key === undefined ? null : parseKey(key, source),
    keySource: source,
    profile,
  }
}

const getUrlFile = (dataDir: string): string => join(dataDir, 'coordinator.json')

const fromUrlFile = (dataDir: string, url: string) => ({
  baseUrl: parseBaseUrl(url),
  urlSource: getUrlFile(dataDir),
  assertRunning: () => assertRunning(dataDir, url),
})

/** The session is that of the profile `local`, whose key takes precedence over owner.key. null: there is no key. */
function fromDataDir({ path, url, key }: DataDir, profiles: Profiles): CoordinatorConfig | null {
  const baseUrl = parseBaseUrl(url ?? '')
  const profile = findLocalProfile(profiles, baseUrl)
  const found = { ...fromUrlFile(path, url ?? ''), ...(profile !== null && { profile }) }
  if (profile?.key !== undefined) {
    const keySource = formatProfileSource(profile.name)
    return { ...found, key: parseKey(profile.key, keySource), keySource }
  }
  const keySource = getOwnerKeyFile(path)
  if (key !== null) return { ...found, key: parseKey(key, keySource), keySource }
  return profile?.session === undefined ? null : { ...found, key: null, keySource: '' }
}

function findDataDir(env: Environment, cwd: string, projectDir: string): DataDir | null {
  for (const path of listDataDirs(env, cwd, projectDir)) {
    const url = readUrl(join(path, 'coordinator.json'))
    // Skip a directory without a URL: its key may belong to a different coordinator than BOXWOOD_URL.
    if (url === null) continue
    assertOwn(path)
    return { path, url, key: env.BOXWOOD_API_KEY ? null : readOwnerKey(path) }
  }
  return env.BOXWOOD_DATA ? { path: resolve(cwd, env.BOXWOOD_DATA), url: null, key: null } : null
}

/** The running coordinator of the data directory on this machine. @throws CliError when there is none */
export function findLocalCoordinator(
  env: Environment,
  cwd: string,
  projectDir: string,
): { baseUrl: string; dataDir: string; url: string } {
  const dataDir = findDataDir(env, cwd, projectDir)
  const baseUrl = getBaseUrl(dataDir, cwd, projectDir)
  return { baseUrl, dataDir: dataDir?.path ?? '', url: dataDir?.url ?? '' }
}

/**
 * Call it before a credential of the profile `local` is sent to the URL of the profile.
 * @throws CliError or as assertRunning(), unless the coordinator of the data directory runs at the URL
 */
export function assertLocalRunning(url: string, env: Environment, cwd: string, projectDir: string): void {
  const local = findLocalCoordinator(env, cwd, projectDir)
  if (!isSameOrigin(local.baseUrl, url))
    throw new CliError(
      EXIT.unreachable,
      `The coordinator of the data directory ${local.dataDir} is at ${local.url}, not at ${new URL(url).origin}. For another data directory, set BOXWOOD_DATA.`,
    )
  assertRunning(local.dataDir, local.url)
}

/** The data directories that box uses, the first one with a running coordinator. */
export const listDataDirs = (env: Environment, cwd: string, projectDir: string): string[] =>
  env.BOXWOOD_DATA ? [resolve(cwd, env.BOXWOOD_DATA)] : [join(cwd, '.boxwood'), join(projectDir, '.boxwood')]

/**
 * The data directory of findCoordinator(), also when no coordinator is running: the first directory with a database, else
 * the directory of `npm start`. Returns an absolute path. @throws CliError for a directory of another user
 */
export function findDataDirectory(env: Environment, cwd: string, projectDir: string): string {
  const paths = listDataDirs(env, cwd, projectDir)
  for (const file of ['coordinator.json', 'boxwood.db']) {
    const path = paths.find((dir) => existsSync(join(dir, file)))
    if (path !== undefined) return assertOwn(path)
  }
  return assertOwn(paths.at(-1) ?? join(projectDir, '.boxwood'))
}

/** Another user could name a coordinator that gets the commands and files of this user. @throws CliError */
function assertOwn(dataDir: string): string {
  const foreignControl = findForeignControl(dataDir, process.getuid?.() ?? 0)
  if (foreignControl !== null) throw new CliError(EXIT.notAuthenticated, foreignControl)
  return dataDir
}

function readUrl(path: string): string | null {
  const text = readFileIfExists(path)
  if (text === null) return null
  try {
    const { url } = JSON.parse(text) as { url?: unknown }
    return typeof url === 'string' ? url : null
  } catch {
    throw new CliError(EXIT.unreachable, `${path} is not valid JSON. Restart the coordinator to rewrite it.`)
  }
}

export const getOwnerKeyFile = (dataDir: string): string => join(dataDir, 'owner.key')

/** null: there is no key. */
export function readOwnerKey(dataDir: string): string | null {
  return readFileIfExists(getOwnerKeyFile(dataDir))?.trim() || null
}

function readFileIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    if (code === 'EACCES') {
      throw new CliError(
        EXIT.notAuthenticated,
        `Cannot read ${path}: permission denied. Run box as the user who started the coordinator.`,
      )
    }
    throw error
  }
}

const API_PATH = '/api/v1'

/** Adds `/api/v1` to the URL of a coordinator, which may have a path that a proxy adds. @param source for the error message @throws CliError */
export function parseBaseUrl(text: string, source = 'BOXWOOD_URL'): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new CliError(
      EXIT.usage,
      `${source} is not a valid URL: ${JSON.stringify(text)}. Example: http://127.0.0.1:7070`,
    )
  }
  const path = url.pathname.replace(/\/+$/, '')
  return `${url.origin}${path.endsWith(API_PATH) ? path : path + API_PATH}`
}

/** The URL of the coordinator, without a slash at its end. @param baseUrl the result of parseBaseUrl() */
export const getRootUrl = (baseUrl: string): string => baseUrl.replace(/\/api\/v1$/, '')

function getBaseUrl(dataDir: DataDir | null, cwd: string, projectDir: string): string {
  if (dataDir === null) {
    const paths = [...new Set([join(cwd, '.boxwood'), join(projectDir, '.boxwood')])].join(' or ')
    throw new CliError(
      EXIT.unreachable,
      `No coordinator is running with the data directory ${paths}. ${getStartHint()} For another data directory, set BOXWOOD_DATA.`,
    )
  }
  if (dataDir.url === null) {
    throw new CliError(
      EXIT.unreachable,
      `No coordinator is running with the data directory ${dataDir.path} (BOXWOOD_DATA). ${getStartHint()}`,
    )
  }
  return parseBaseUrl(dataDir.url)
}

/** Trims the key. Throws CliError if it is mistyped, or has characters that the Authorization header does not allow. */
export function parseKey(key: string, keySource: string): string {
  const trimmed = key.trim()
  if (isMistypedApiKey(trimmed))
    throw new CliError(
      EXIT.notAuthenticated,
      `The API key in ${keySource} has a typing error. Copy it again.`,
    )
  if (/^[\x21-\x7e]+$/.test(trimmed)) return trimmed
  throw new CliError(
    EXIT.notAuthenticated,
    `The API key in ${keySource} has invalid characters. Copy it again; keys start with dcp_.`,
  )
}

const isSameOrigin = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin
