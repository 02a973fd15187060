// The base environment of commands. Small, because a large environment slows every process start.
import { userInfo } from 'node:os'
import { ApiError } from '../../shared/errors.ts'
import { ENV_NAME_PATTERN } from '../../shared/field-values.ts'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Variables of the agent that commands inherit. The provider of the box's machine sets them where they are needed. */
const INHERITED_VARIABLES = [
  // Identifies the processes of the box, also those that outlive the agent or have become daemons.
  'BOXWOOD_BOX',
  // The box may share /tmp with other boxes.
  'TMPDIR',
  // ~/.profile adds this directory to PATH.
  'BOXWOOD_PROGRAMS',
  // The CPUs of the box, which nproc prints.
  'OMP_NUM_THREADS',
  // The next two make package managers install into the home directory of a box without root access.
  'NPM_CONFIG_GLOBALCONFIG',
  'PIP_BREAK_SYSTEM_PACKAGES',
]

type Environment = Record<string, string | undefined>

/** Creates the environment of a process: the base environment, with the variables that each of the overrides has. */
export type CreateEnvironment = (
  ...overrides: readonly (Readonly<Record<string, string>> | undefined)[]
) => Record<string, string>

/** Of these, programs read the lower or the upper case. The notation of a lower layer would hide that of a higher one. */
const EITHER_CASE = ['HTTPS_PROXY', 'NO_PROXY']

/**
 * @param base the variables that do not change
 * @param readBrokerVariables the variables that route connections to the broker of secrets: agent/broker/variables.ts
 */
export function createEnvironmentFactory(
  base: Readonly<Record<string, string>>,
  readBrokerVariables: () => Readonly<Record<string, string>> = () => ({}),
): CreateEnvironment {
  return (...overrides) => {
    const env = { ...base, ...readBrokerVariables() }
    for (const variables of overrides) {
      for (const name of EITHER_CASE) {
        const lowerCase = name.toLowerCase()
        if (variables?.[name] === undefined && variables?.[lowerCase] === undefined) continue
        delete env[name]
        delete env[lowerCase]
      }
      Object.assign(env, variables)
    }
    return env
  }
}

/** TERM is not set: commands have no terminal. BOXWOOD_INHERITED has the names of the variables of the box's image. */
export function baseEnvironment(home: string, agentEnv: Environment): Record<string, string> {
  const { name, shell } = currentUser(agentEnv)
  return {
    HOME: home,
    USER: name,
    LOGNAME: name,
    SHELL: shell,
    PATH: agentEnv.PATH ?? DEFAULT_PATH,
    LANG: agentEnv.LANG ?? 'C.UTF-8',
    ...pick(agentEnv, agentEnv.BOXWOOD_INHERITED?.split(' ') ?? []),
    ...pick(agentEnv, INHERITED_VARIABLES),
  }
}

const pick = (env: Environment, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))

function currentUser(agentEnv: Environment): { name: string; shell: string } {
  try {
    const { username, shell } = userInfo()
    return { name: username, shell: shell ?? '/bin/sh' }
  } catch {
    // userInfo() throws for a uid without an entry in /etc/passwd.
    return { name: agentEnv.USER ?? agentEnv.LOGNAME ?? String(process.getuid?.() ?? ''), shell: '/bin/sh' }
  }
}

/**
 * The coordinator validated its clients' variables; this protects the kernel's NAME=value format.
 * @throws ApiError invalid_request
 */
export function assertEnvironment(variables: Record<string, string> = {}): void {
  for (const [name, value] of Object.entries(variables)) {
    if (!ENV_NAME_PATTERN.test(name) || value.includes('\0'))
      throw new ApiError(
        'invalid_request',
        `The environment variable ${JSON.stringify(name)} cannot be set. Omit it.`,
      )
  }
}
