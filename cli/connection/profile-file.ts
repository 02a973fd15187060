// The file with the profiles of `box login`: coordinators with their credentials. Only the user may read it.
import {
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** Unknown fields are kept: a later version of box may have written them. */
export type Profile = {
  name: string
  /** The control-plane address with its path prefix, such as `/api/v1`; no trailing slash. */
  url: string
  key?: string
  keyId?: string
  /** RFC 3339; absent for a key that never expires. */
  keyExpiresAt?: string
  /** The value of the session cookie. */
  session?: string
  /** RFC 3339. */
  sessionExpiresAt?: string
  /** The email of the user, else the name. */
  user?: string
  /** The name of the workspace. */
  workspace?: string
}

export type Profiles = {
  /** The name that `box use` has selected; null: the coordinator of this machine. */
  selected: string | null
  profiles: Profile[]
}

type Environment = Record<string, string | undefined>

/** The path follows the XDG Base Directory Specification. */
export function getProfilePath(env: Environment): string {
  const { XDG_CONFIG_HOME = '' } = env
  // The specification ignores relative paths.
  const configHome = XDG_CONFIG_HOME.startsWith('/')
    ? XDG_CONFIG_HOME
    : join(env.HOME || homedir(), '.config')
  return join(configHome, 'boxwood', 'profiles.json')
}

/** No profiles when the file does not exist. @throws CliError when another user may read the file, or owns it */
export function readProfiles(path: string): Profiles {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { selected: null, profiles: [] }
    throw new CliError(EXIT.failed, `Cannot read ${path}: ${(error as Error).message}.`, { cause: error })
  }
  try {
    const { mode, uid } = fstatSync(fd)
    if (uid !== process.getuid?.())
      throw new CliError(
        EXIT.notAuthenticated,
        `${path} belongs to another user. Run box as that user, or set XDG_CONFIG_HOME to a directory of your own.`,
      )
    if ((mode & 0o077) !== 0)
      throw new CliError(
        EXIT.notAuthenticated,
        `Other users can read or change ${path}, which contains credentials. Run \`chmod 600 ${path}\`, and sign in again if another user may have read the file.`,
      )
    return parseProfiles(readFileSync(fd, 'utf8'), path)
  } finally {
    closeSync(fd)
  }
}

function parseProfiles(text: string, path: string): Profiles {
  try {
    const file = JSON.parse(text) as Partial<Profiles>
    const { selected = null, profiles = [] } = file
    if (profiles.every(isProfile) && (selected === null || typeof selected === 'string'))
      return { ...file, selected, profiles }
  } catch {
    // Thrown below.
  }
  throw new CliError(
    EXIT.failed,
    `${path} is not a valid file of profiles. Correct or delete it, and sign in again with \`box login\`.`,
  )
}

const isProfile = (value: Partial<Profile> | null): boolean =>
  typeof value?.name === 'string' &&
  typeof value.url === 'string' &&
  URL.canParse(value.url) &&
  [value.key, value.keyId, value.session, value.user, value.workspace].every(
    (field) => field === undefined || typeof field === 'string',
  )

/** Replaces the file at once: other processes read the file before or after the change. @throws CliError */
export function writeProfiles(path: string, profiles: Profiles): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    replaceFile(path, `${JSON.stringify(profiles, null, 2)}\n`)
  } catch (error) {
    throw new CliError(EXIT.failed, `Cannot write ${path}: ${(error as Error).message}.`, { cause: error })
  }
}

function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`
  const fd = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(fd, text)
    fsyncSync(fd)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

/** @param change gets the profiles as they are now @throws CliError */
export function updateProfiles(path: string, change: (profiles: Profiles) => Profiles): void {
  writeProfiles(path, change(readProfiles(path)))
}

/** Adds the profile, or replaces the one with its name. */
export function putProfile(file: Profiles, profile: Profile): Profiles {
  const others = file.profiles.filter(({ name }) => name !== profile.name)
  return { ...file, profiles: [...others, profile].sort((a, b) => (a.name < b.name ? -1 : 1)) }
}

export function removeProfile(file: Profiles, removed: string): Profiles {
  const profiles = file.profiles.filter(({ name }) => name !== removed)
  return { ...file, profiles, selected: file.selected === removed ? null : file.selected }
}
