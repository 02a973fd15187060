// Starts Chromium on the whole screen of the desktop.
import { execFile } from 'node:child_process'
import { lstat, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../shared/errors.ts'
import type { Leader, SessionRecord } from './session-record.ts'
import { hasExited, startProgram } from './start-program.ts'

export type BrowserOptions = Pick<SessionRecord, 'width' | 'height'> & {
  file: string
  home: string
  env: Record<string, string>
  url: string | undefined
}

const START_TIMEOUT_MS = 30_000
const POLL_MS = 20
const PROFILE = '.local/share/boxwood/desktop-browser'
/** Symbolic links of a running Chromium. It creates the second one when it has started to use the profile. */
const LINKS = ['SingletonLock', 'SingletonSocket'] as const
/** The longest directory in which Chromium can create its socket: the path of a socket has at most 107 bytes. */
const MAX_TEMP_DIR_BYTES = 60

/**
 * Resolves when Chromium uses its profile. Its sandbox needs user namespaces, and an ordinary user: elsewhere it runs without
 * its sandbox, and the box is the only boundary of the pages.
 * @throws ApiError exec_failed
 */
export async function startBrowser(options: BrowserOptions): Promise<Leader> {
  const { file, home, env, url = 'about:blank', width, height } = options
  const profile = join(home, PROFILE)
  await mkdir(profile, { recursive: true, mode: 0o700 })
  // A killed Chromium leaves the links. The first one has the host name: after a rename of the box, Chromium would not start.
  for (const link of LINKS) await rm(join(profile, link), { force: true })
  const args = [
    `--user-data-dir=${profile}`,
    ...['--kiosk', '--no-first-run', '--no-default-browser-check', '--password-store=basic'],
    ...['--window-position=0,0', `--window-size=${width},${height}`],
    // The X server has no GPU, and /dev/shm of a container is small.
    ...['--disable-gpu', '--disable-dev-shm-usage', '--disable-session-crashed-bubble'],
    ...((await hasSandbox(env)) ? [] : ['--no-sandbox', '--test-type']),
    url,
  ]
  const { child, pid, startTime } = await startProgram(await findBinary(file), args, {
    cwd: home,
    env: withShortTempDir(env),
  })
  const [, ready] = LINKS
  for (const startedAt = performance.now(); !(await exists(join(profile, ready))); await delay(POLL_MS)) {
    if (hasExited(child)) throw createStartError(`it exited with ${child.exitCode ?? child.signalCode}`)
    if (performance.now() - startedAt > START_TIMEOUT_MS) throw createStartError('it did not become ready')
  }
  return { pid, startTime }
}

/** Chromium creates a private directory there, also where boxes share /tmp. */
const withShortTempDir = (env: Record<string, string>): Record<string, string> =>
  Buffer.byteLength(env.TMPDIR ?? '') > MAX_TEMP_DIR_BYTES ? { ...env, TMPDIR: '/tmp' } : env

/** The launcher of Debian needs its configuration, which is not in the /etc of a local box. */
const DEBIAN_LAUNCHER = '/usr/bin/chromium'
const DEBIAN_CONFIGURATION = '/etc/chromium.d'
const DEBIAN_BINARY = '/usr/lib/chromium/chromium'

const findBinary = async (file: string): Promise<string> =>
  file === DEBIAN_LAUNCHER && !(await exists(DEBIAN_CONFIGURATION)) && (await exists(DEBIAN_BINARY))
    ? DEBIAN_BINARY
    : file

const createStartError = (reason: string): ApiError =>
  new ApiError(
    'exec_failed',
    `Chromium did not start: ${reason}. Run it in a terminal of the desktop to see why.`,
  )

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** Whether an ordinary user can create user namespaces, which unshare of util-linux finds out. */
const hasSandbox = (env: Record<string, string>): Promise<boolean> =>
  process.getuid?.() === 0
    ? Promise.resolve(false)
    : new Promise((resolve) => {
        execFile('unshare', ['--user', 'true'], { env, timeout: 10_000 }, (error) => resolve(error === null))
      })
