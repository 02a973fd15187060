// Reads the environment that a login shell of the box user has, by running one. Cached until a profile file changes.

import { randomBytes } from 'node:crypto'
import { basename, join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ENV_NAME_PATTERN } from '../../../shared/field-values.ts'
import { PROCESS_ID_VARIABLE } from '../../process-table.ts'
import { fileIdentity } from './file-identity.ts'
import type { Prober } from './probe.ts'

export type Environment = Record<string, string>

export type LoginVariables = {
  /** Runs a login shell when a profile file has changed since the last one. Never rejects. */
  read(): Promise<Environment>
  /** Returns the last result; before the first one, the base environment with ~/.local/bin in PATH. */
  current(): Environment
}

export type LoginVariablesOptions = {
  home: string
  baseEnv: Environment
  prober: Prober
  clock: Clock
  log: Logger
  /** The time limit of the login shell. Default: 5 s. */
  timeoutMs?: number
}

const TIMEOUT_MS = 5_000
/** Linux limits one variable to 128 KiB; large environments slow every process start. */
const MAX_BYTES = 1024 * 1024
/** Bounds the age because profile files read other files, such as ~/.nvm/nvm.sh, whose changes are not noticed. */
const MAX_AGE_MS = 60 * 60_000

/** Shells that have `-l -c`. Other ones, such as tcsh and nologin, are replaced by sh. */
const SHELLS = ['bash', 'zsh', 'dash', 'sh', 'ash', 'ksh', 'mksh', 'fish']

/** The list includes files that profile files commonly read. */
const SYSTEM_FILES = [
  '/etc/profile',
  '/etc/profile.d',
  '/etc/bash.bashrc',
  '/etc/zsh/zshenv',
  '/etc/zsh/zprofile',
  '/etc/fish/config.fish',
]
const HOME_FILES = [
  '.profile',
  '.bash_profile',
  '.bash_login',
  '.bashrc',
  '.zshenv',
  '.zprofile',
  '.zshrc',
  '.zlogin',
  '.config/fish/config.fish',
  '.config/fish/conf.d',
]

/** These variables belong to the shell that ran, not to a login. */
const SHELL_VARIABLES = ['_', 'SHLVL', 'PWD', 'OLDPWD', PROCESS_ID_VARIABLE]

type Reading = { env: Environment; files: string; readAt: number }

export function createLoginVariables(options: LoginVariablesOptions): LoginVariables {
  const { home, baseEnv, prober, clock, log, timeoutMs = TIMEOUT_MS } = options
  const fallback = withLocalPrograms(baseEnv, home)
  let last: Reading | undefined
  let running: { files: string; result: Promise<Environment> } | undefined

  async function runShell(): Promise<Environment> {
    // The profile may print anything: the environment is between two copies of a random text.
    const separator = randomBytes(16).toString('hex')
    const script = `printf %s ${separator}; /usr/bin/env -0; printf %s ${separator}`
    const command = `exec ${chooseShell(baseEnv.SHELL)} -l -c '${script}'`
    const run = { cwd: home, env: baseEnv, timeoutMs, maxBytes: MAX_BYTES }
    const { exitCode, timedOut, stdout } = await prober.run(command, run)
    const parts = stdout.split(separator)
    const text = parts.at(-2)
    if (parts.length < 3 || text === undefined) {
      log.warn({ exitCode, timedOut }, 'no environment from a login shell; coding agents get the base one')
      return fallback
    }
    return withLocalPrograms({ ...baseEnv, ...parseEnvironment(text) }, home)
  }

  /** Concurrent calls for the same state of the files share a shell. */
  function refresh(files: string): Promise<Environment> {
    if (running?.files === files) return running.result
    const started = { files, result: Promise.resolve(fallback) }
    running = started
    started.result = runShell()
      .catch((err: unknown) => {
        log.warn({ err }, 'failed to start a login shell; coding agents get the base environment')
        return fallback
      })
      .then((env) => {
        if (running === started) {
          // read() returns the same object while nothing has changed.
          if (last === undefined || !isSame(last.env, env)) last = { env, files, readAt: clock.now() }
          else last = { ...last, files, readAt: clock.now() }
          running = undefined
        }
        return env
      })
    return started.result
  }

  return {
    async read() {
      const paths = [...SYSTEM_FILES, ...HOME_FILES.map((name) => join(home, name))]
      const files = (await Promise.all(paths.map(fileIdentity))).join('\n')
      if (last?.files !== files) return refresh(files)
      // Prompts do not wait for a shell that only runs because of the age.
      if (clock.now() - last.readAt > MAX_AGE_MS) void refresh(files)
      return last.env
    },
    current: () => last?.env ?? fallback,
  }
}

const chooseShell = (shell = ''): string =>
  SHELLS.includes(basename(shell)) && /^[\w./-]+$/.test(shell) ? shell : '/bin/sh'

/** Omits exported functions of bash, and other names that a run cannot have. */
function parseEnvironment(text: string): Environment {
  const env: Environment = {}
  for (const assignment of text.split('\0')) {
    const index = assignment.indexOf('=')
    const name = assignment.slice(0, index)
    if (index > 0 && ENV_NAME_PATTERN.test(name) && !SHELL_VARIABLES.includes(name))
      env[name] = assignment.slice(index + 1)
  }
  return env
}

/** Programs that the agent or `npm install --prefix ~/.local` has installed are found without a change of the profile. */
function withLocalPrograms(env: Environment, home: string): Environment {
  const dir = join(home, '.local/bin')
  const dirs = (env.PATH ?? '').split(':').filter((entry) => entry !== '')
  return dirs.includes(dir) ? env : { ...env, PATH: [...dirs, dir].join(':') }
}

/** The environment of a run. @param boxEnv overrides the environment of the login shell */
export function toRunVariables(login: Environment, boxEnv: Environment, home: string): Environment {
  return withLocalPrograms({ ...login, ...boxEnv }, home)
}

function isSame(a: Environment, b: Environment): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name])
}
