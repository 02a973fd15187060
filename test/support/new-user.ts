// An ordinary user with an empty home directory and a copy of the project, as after a clone.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Test } from 'tap'
import { PROJECT_DIR } from './project.ts'
import { createTempDir } from './temp-dir.ts'

/** A root suite runs the commands with this user id, which no user of the machine has. */
const UID = '54322'
const isRoot = process.getuid?.() === 0

const EXCLUDED = ['node_modules', '.git', '.types', '.tap', '.boxwood']
const INHERITED_VARIABLES =
  /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|BOXWOOD_LOCAL_\w+|TMPDIR|LANG|TERM)$/i

export type NewUser = {
  home: string
  projectDir: string
  /** A command that replaces the current shell by a shell of this user in the project directory. */
  loginCommand: string
}

/** Copies the cache of npm, so that `npm ci` downloads nothing again. */
export function createNewUser(t: Test, variables: Record<string, string> = {}): NewUser {
  const home = createTempDir(t, 'user')
  const projectDir = join(home, 'boxwood')
  cpSync(PROJECT_DIR, projectDir, {
    recursive: true,
    filter: (path) => !EXCLUDED.includes(relative(PROJECT_DIR, path)) && !path.endsWith('.node'),
  })
  const cache = join(getNpmConfig('cache'), '_cacache')
  mkdirSync(join(home, '.npm'))
  if (existsSync(cache)) cpSync(cache, join(home, '.npm/_cacache'), { recursive: true })
  chmodSync(home, 0o755)
  if (isRoot) execFileSync('chown', ['-R', `${UID}:${UID}`, home])
  const inherited = Object.entries(process.env).filter(([name]) => INHERITED_VARIABLES.test(name))
  const environment = {
    ...Object.fromEntries(inherited),
    HOME: home,
    PATH: [join(home, '.local/bin'), ...getPath()].join(':'),
    SHELL: '/bin/bash',
    npm_config_registry: getNpmConfig('registry'),
    npm_config_prefer_offline: 'true',
    // .ci/run also installs the packages of the tests.
    npm_config_omit: 'dev',
    ...variables,
  }
  const assignments = Object.entries(environment).map(([name, value]) => `'${name}=${value}'`)
  const setpriv = `setpriv --reuid ${UID} --regid ${UID} --clear-groups --inh-caps=-all --bounding-set=-all`
  const command = `env -i -C '${projectDir}' ${assignments.join(' ')} bash --noprofile --norc`
  return { home, projectDir, loginCommand: `exec ${isRoot ? `${setpriv} ` : ''}${command}` }
}

const getNpmConfig = (key: string): string =>
  execFileSync('npm', ['config', 'get', key], {
    cwd: PROJECT_DIR,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

/** Without the programs of this project's packages, which `npm test` adds. */
const getPath = (): string[] =>
  (process.env.PATH ?? '').split(':').filter((dir) => !dir.includes('/node_modules/'))
