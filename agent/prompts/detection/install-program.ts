// Installs OpenCode and pi with the npm of the box.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { UNKNOWN_AUTHORITY_CODES } from '../../../shared/certificate-codes.ts'
import { shellQuote } from '../../../shared/shell-quote.ts'
import type { Provider } from '../providers/types.ts'
import { findProgram } from './file-identity.ts'
import type { Environment } from './login-variables.ts'
import { failedInstallError, missingNpmError, untrustedRegistryError } from './messages.ts'
import type { Prober } from './probe.ts'
import { summarizeNpm } from './summarize-npm.ts'

export type Installer = {
  /**
   * Concurrent calls for one provider share an installation; installations of several providers run one after the other.
   * @throws ApiError provider_not_installed
   */
  install(provider: Provider, installPackage: string, env: Environment): Promise<void>
}

export type InstallerOptions = {
  home: string
  prober: Prober
  log: Logger
  /** The time limit, from the call of install(). Default: 4 minutes. */
  timeoutMs?: number
}

/**
 * An installation, the start of a login shell and `--version` together take less than START_TIMEOUT_MS in
 * coordinator/edge/start-prompt.ts.
 */
const TIMEOUT_MS = 4 * 60_000
/** The part of the time limit that must remain for the start of an installation. */
const MIN_REMAINING = 0.1
const PREFIX_TIMEOUT_MS = 30_000
const PING_TIMEOUT_MS = 10_000
const CERTIFICATE_ERROR = new RegExp(`\\b(${UNKNOWN_AUTHORITY_CODES.join('|')})\\b`)
const MAX_BYTES = 64 * 1024
const QUIET = '--no-audit --no-fund --no-progress --no-update-notifier'

export function createInstaller(options: InstallerOptions): Installer {
  const { home, prober, log, timeoutMs = TIMEOUT_MS } = options
  const limit = pLimit(1)
  const running = new Map<string, Promise<void>>()

  async function runNpm(
    provider: Provider,
    installPackage: string,
    { env, deadline }: { env: Environment; deadline: number },
  ): Promise<void> {
    const timeLimit = `it did not finish within ${timeoutMs / 1000} s`
    const getRemainingMs = () => Math.max(1, deadline - performance.now())
    if (getRemainingMs() < timeoutMs * MIN_REMAINING)
      throw failedInstallError(provider, `${timeLimit}, because another installation was in progress`, '')
    const npm = await findProgram('npm', env.PATH)
    if (npm === null) throw missingNpmError(provider)
    await assertTrustsRegistry(provider, npm.path, env, Math.min(PING_TIMEOUT_MS, getRemainingMs()))
    const prefix = (await usesGlobalPrefix(npm.path, env, Math.min(PREFIX_TIMEOUT_MS, getRemainingMs())))
      ? ''
      : `--prefix ${shellQuote(join(home, '.local'))}`
    // The install script of OpenCode links its program. Newer versions of npm only run the scripts of allowed packages.
    const allowScripts = `--allow-scripts=${shellQuote(installPackage.replace(/@[^@/]*$/, ''))}`
    const command = `exec ${shellQuote(npm.path)} install -g ${prefix} ${QUIET} ${allowScripts} ${shellQuote(installPackage)}`
    log.info({ provider: provider.name, installPackage }, 'installing a coding agent')
    const run = { cwd: home, env, timeoutMs: getRemainingMs(), maxBytes: MAX_BYTES }
    const { exitCode, timedOut, stdout, stderr } = await prober.run(command, run)
    if (exitCode === 0) return
    const status = timedOut ? timeLimit : exitCode === null ? 'it was terminated' : `exit status ${exitCode}`
    log.warn({ provider: provider.name, exitCode, timedOut }, 'failed to install a coding agent')
    const output = summarizeNpm(stderr.trim() === '' ? stdout : stderr)
    throw failedInstallError(provider, status, output)
  }

  /** npm repeats a request for more than a minute after each failure, also when it does not trust the certificate. */
  async function assertTrustsRegistry(
    provider: Provider,
    npm: string,
    env: Environment,
    timeoutMs: number,
  ): Promise<void> {
    const run = { cwd: home, env, timeoutMs, maxBytes: MAX_BYTES }
    const { exitCode, stderr } = await prober.run(`exec ${shellQuote(npm)} ping --fetch-retries=0`, run)
    const code = exitCode === 0 ? undefined : CERTIFICATE_ERROR.exec(stderr)?.[0]
    if (code !== undefined) throw untrustedRegistryError(provider, code)
  }

  /** Whether the global prefix of npm is writable, and programs in it are found. */
  async function usesGlobalPrefix(npm: string, env: Environment, timeoutMs: number): Promise<boolean> {
    const run = { cwd: home, env, timeoutMs, maxBytes: MAX_BYTES }
    const { exitCode, stdout } = await prober.run(`exec ${shellQuote(npm)} prefix -g`, run)
    const prefix = stdout.trim().split('\n').at(-1) ?? ''
    if (exitCode !== 0 || !isAbsolute(prefix)) return false
    if (!(env.PATH ?? '').split(':').includes(join(prefix, 'bin'))) return false
    const dirs = ['bin', 'lib/node_modules'].map((dir) => join(prefix, dir))
    return (await Promise.all(dirs.map(canCreateIn))).every(Boolean)
  }

  return {
    install(provider, installPackage, env) {
      const known = running.get(provider.name)
      if (known !== undefined) return known
      const deadline = performance.now() + timeoutMs
      const installing = limit(() => runNpm(provider, installPackage, { env, deadline })).finally(() =>
        running.delete(provider.name),
      )
      running.set(provider.name, installing)
      return installing
    },
  }
}

/** Whether the directory, or the nearest one above it that exists, is writable. */
async function canCreateIn(dir: string): Promise<boolean> {
  try {
    await access(dir, constants.W_OK)
    return true
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return isMissing && dir !== dirname(dir) && canCreateIn(dirname(dir))
  }
}
