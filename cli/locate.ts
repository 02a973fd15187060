// Where the coordinator is and with which key: from the environment, else from a data folder on this machine.
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT, Failure } from './exit-codes.ts'

export type Environment = Record<string, string | undefined>

export type Place = {
  /** {base_url}: with the path prefix, without a slash at its end. */
  baseUrl: string
  key: string
  /** Where the two came from, for a sentence about what to change. */
  urlFrom: string
  keyFrom: string
}

type Local = { folder: string; url: string | null; key: string | null }

const HOW_TO_START = 'Start one with `npm start`, or set BOXWOOD_URL and BOXWOOD_API_KEY.'

/**
 * `BOXWOOD_URL` and `BOXWOOD_API_KEY` first. What they leave out comes from the data folder: `BOXWOOD_DATA`, else
 * `.boxwood` in `cwd`, else `.boxwood` in `project`. The key found there goes to that coordinator only.
 */
export function locate(env: Environment, cwd: string, project: string): Place {
  const local = findLocal(env, cwd, project)
  const baseUrl = env.BOXWOOD_URL ? parseBaseUrl(env.BOXWOOD_URL) : baseUrlOf(local)
  const urlFrom = env.BOXWOOD_URL ? 'BOXWOOD_URL' : join(local?.folder ?? '', 'coordinator.json')
  if (env.BOXWOOD_API_KEY) {
    return { baseUrl, urlFrom, key: checkKey(env.BOXWOOD_API_KEY), keyFrom: 'BOXWOOD_API_KEY' }
  }
  if (local?.key && local.url !== null && sameOrigin(local.url, baseUrl)) {
    return { baseUrl, urlFrom, key: checkKey(local.key), keyFrom: join(local.folder, 'owner.key') }
  }
  const where = env.BOXWOOD_URL ? ` for ${baseUrl}` : ` in ${local?.folder}`
  throw new Failure(EXIT.notSignedIn, `There is no API key${where}. Set BOXWOOD_API_KEY (a key is dcp_…).`)
}

function findLocal(env: Environment, cwd: string, project: string): Local | null {
  const folders = env.BOXWOOD_DATA
    ? [resolve(cwd, env.BOXWOOD_DATA)]
    : [join(cwd, '.boxwood'), join(project, '.boxwood')]
  for (const folder of folders) {
    const url = readUrl(join(folder, 'coordinator.json'))
    // A key without an address is of no use unless BOXWOOD_URL is this very coordinator, which nothing would tell.
    if (url !== null) return { folder, url, key: env.BOXWOOD_API_KEY ? null : readKey(folder) }
  }
  return env.BOXWOOD_DATA ? { folder: resolve(cwd, env.BOXWOOD_DATA), url: null, key: null } : null
}

function readUrl(path: string): string | null {
  const text = read(path)
  if (text === null) return null
  try {
    const { url } = JSON.parse(text) as { url?: unknown }
    return typeof url === 'string' ? url : null
  } catch {
    throw new Failure(EXIT.unreachable, `${path} is not readable as JSON. Restart the coordinator.`)
  }
}

function readKey(folder: string): string | null {
  return read(join(folder, 'owner.key'))?.trim() || null
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    if (code === 'EACCES') {
      throw new Failure(
        EXIT.notSignedIn,
        `${path} belongs to another user of this machine. Set BOXWOOD_URL and BOXWOOD_API_KEY.`,
      )
    }
    throw error
  }
}

/** A bare origin is taken too. */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    const example = 'http://127.0.0.1:7070/api/v1'
    throw new Failure(
      EXIT.usage,
      `BOXWOOD_URL is ${JSON.stringify(text)}, not an address such as ${example}.`,
    )
  }
  const path = url.pathname.replace(/\/+$/, '')
  return `${url.origin}${path === '' ? '/api/v1' : path}`
}

function baseUrlOf(local: Local | null): string {
  if (local === null) throw new Failure(EXIT.unreachable, `No coordinator was found here. ${HOW_TO_START}`)
  if (local.url === null) {
    const said = `No coordinator has started with the data folder ${local.folder} (BOXWOOD_DATA).`
    throw new Failure(EXIT.unreachable, `${said} ${HOW_TO_START}`)
  }
  return parseBaseUrl(local.url)
}

/** A key goes into a header: anything but printable ASCII would be refused there with less to read. */
function checkKey(key: string): string {
  const trimmed = key.trim()
  if (/^[\x21-\x7e]+$/.test(trimmed)) return trimmed
  throw new Failure(EXIT.notSignedIn, 'The API key holds spaces or other characters that no key has.')
}

const sameOrigin = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin

/** The project that this command is installed in. */
export const PROJECT = dirname(import.meta.dirname)
