// Installs npm packages that only some tests need into a directory with a package.json and a lock file of its own.
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT_DIR } from './project.ts'
import { LONG_DEADLINE_MS } from './wait-until.ts'

/**
 * `flock` makes the other test files wait for the installation. After a failure they do not repeat it for ten minutes.
 * Without a copy of the lock file, an interrupted installation counts as missing. `npm ci` would refuse the lock file of a
 * registry without the packages of other platforms.
 */
const INSTALL = `
cmp -s package-lock.json node_modules/.installed-lock && exit
if [ -n "$(find "$CACHE_DIR/failure" -mmin -10 2>/dev/null)" ]; then cat "$CACHE_DIR/failure" >&2; exit 1; fi
npm install --no-save --ignore-scripts=false --no-audit --no-fund --fetch-retries=1 --fetch-retry-mintimeout=1000 \\
  >"$CACHE_DIR/output" 2>&1 || {
  mv "$CACHE_DIR/output" "$CACHE_DIR/failure"; cat "$CACHE_DIR/failure" >&2; exit 1
}
rm -f "$CACHE_DIR/failure"
cp package-lock.json node_modules/.installed-lock`

/** What npm prints when it cannot connect to the registry. */
const NO_NETWORK =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED)\b/

/**
 * Concurrent calls, also of other processes, wait for one installation. Returns why the packages are not installed; false:
 * they are. @param names what the packages are, in the reason
 */
export async function installNpmPackages(dir: string, names: string): Promise<string | false> {
  const cacheDir = join(PROJECT_DIR, 'node_modules/.cache', basename(dir))
  mkdirSync(cacheDir, { recursive: true })
  try {
    await promisify(execFile)('flock', [join(cacheDir, 'lock'), 'sh', '-c', INSTALL], {
      cwd: dir,
      env: { ...process.env, CACHE_DIR: cacheDir },
      timeout: LONG_DEADLINE_MS,
    })
    return false
  } catch (error) {
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    const [code] = NO_NETWORK.exec(output) ?? []
    if (code) return `${names} are not installed: no network (${code})`
    throw error
  }
}
