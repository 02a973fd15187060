// Finds the coordinator's URL and an API key: in the environment, else in a data directory on this machine.
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { boxCommand } from './command-name.ts'
import { CliError, EXIT } from './exit-codes.ts'

export type Environment = Record<string, string | undefined>

export type CoordinatorConfig = {
  /** The control-plane address with its path prefix, such as `/api/v1`; no trailing slash. */
  baseUrl: string
  key: string
  /** The variable or file that the URL came from, for error messages. */
  urlSource: string
  /** The variable or file that the key came from, for error messages. */
  keySource: string
}

type DataDir = { path: string; url: string | null; key: string | null }

const getStartHint = () => `Start one with \`${boxCommand()} up\`, or set BOXWOOD_URL and BOXWOOD_API_KEY.`

/**
 * `BOXWOOD_URL` and `BOXWOOD_API_KEY` take precedence. A missing value comes from the data directory: `BOXWOOD_DATA`,
 * else `.boxwood` in `cwd`, else `.boxwood` in `projectDir`. The key of a data directory is sent to the coordinator of
 * that directory only.
 * @throws CliError
 */
export function findCoordinator(env: Environment, cwd: string, projectDir: string): CoordinatorConfig {
  const dataDir = findDataDir(env, cwd, projectDir)
  const baseUrl = env.BOXWOOD_URL ? parseBaseUrl(env.BOXWOOD_URL) : getBaseUrl(dataDir, cwd, projectDir)
  const urlSource = env.BOXWOOD_URL ? 'BOXWOOD_URL' : join(dataDir?.path ?? '', 'coordinator.json')
  if (env.BOXWOOD_API_KEY) {
    const keySource = 'BOXWOOD_API_KEY'
    return { baseUrl, urlSource, key: parseKey(env.BOXWOOD_API_KEY, keySource), keySource }
  }
  if (dataDir?.key && dataDir.url !== null && isSameOrigin(dataDir.url, baseUrl)) {
    const keySource = join(dataDir.path, 'owner.key')
    return { baseUrl, urlSource, key: parseKey(dataDir.key, keySource), keySource }
  }
  const missingFrom = env.BOXWOOD_URL ? `for ${baseUrl}` : `in ${dataDir?.path}`
  throw new CliError(
    EXIT.notAuthenticated,
    `No API key found ${missingFrom}. Set BOXWOOD_API_KEY, for example to the key in owner.key in the coordinator's data directory.`,
  )
}

function findDataDir(env: Environment, cwd: string, projectDir: string): DataDir | null {
  for (const path of listDataDirs(env, cwd, projectDir)) {
    const url = readUrl(join(path, 'coordinator.json'))
    // Skip a directory without a URL: its key may belong to a different coordinator than BOXWOOD_URL.
    if (url !== null) return { path, url, key: env.BOXWOOD_API_KEY ? null : readKey(path) }
  }
  return env.BOXWOOD_DATA ? { path: resolve(cwd, env.BOXWOOD_DATA), url: null, key: null } : null
}

const listDataDirs = (env: Environment, cwd: string, projectDir: string): string[] =>
  env.BOXWOOD_DATA ? [resolve(cwd, env.BOXWOOD_DATA)] : [join(cwd, '.boxwood'), join(projectDir, '.boxwood')]

/**
 * The data directory of findCoordinator(), also when no coordinator is running: the first directory with a database, else
 * the directory of `npm start`. Returns an absolute path.
 */
export function findDataDirectory(env: Environment, cwd: string, projectDir: string): string {
  const paths = listDataDirs(env, cwd, projectDir)
  for (const file of ['coordinator.json', 'boxwood.db']) {
    const path = paths.find((dir) => existsSync(join(dir, file)))
    if (path !== undefined) return path
  }
  return paths.at(-1) ?? join(projectDir, '.boxwood')
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

function readKey(dataDir: string): string | null {
  return readFileIfExists(join(dataDir, 'owner.key'))?.trim() || null
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

/** Adds the path prefix `/api/v1` to a URL without a path. @throws CliError */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new CliError(
      EXIT.usage,
      `BOXWOOD_URL is not a valid URL: ${JSON.stringify(text)}. Example: http://127.0.0.1:7070`,
    )
  }
  const path = url.pathname.replace(/\/+$/, '')
  return `${url.origin}${path === '' ? '/api/v1' : path}`
}

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

/** Trims the key. Throws CliError if it has characters that are not allowed in the Authorization header. */
function parseKey(key: string, keySource: string): string {
  const trimmed = key.trim()
  if (/^[\x21-\x7e]+$/.test(trimmed)) return trimmed
  throw new CliError(
    EXIT.notAuthenticated,
    `The API key in ${keySource} has invalid characters. Copy it again; keys start with dcp_.`,
  )
}

const isSameOrigin = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin
