// The environment of a command: small, because a large one makes every start slower.
import { userInfo } from 'node:os'

/** Carried by everything a command starts, so that its whole tree can be found again. */
export const PROCESS_ID_VARIABLE = 'BOXWOOD_PROCESS_ID'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

type Environment = Record<string, string | undefined>

/** What every command gets. TERM is left out: there is no terminal. */
export function baseEnvironment(home: string, agent: Environment): Record<string, string> {
  const { name, shell } = user(agent)
  return {
    HOME: home,
    USER: name,
    LOGNAME: name,
    SHELL: shell,
    PATH: agent.PATH ?? DEFAULT_PATH,
    LANG: agent.LANG ?? 'C.UTF-8',
  }
}

function user(agent: Environment): { name: string; shell: string } {
  try {
    const { username, shell } = userInfo()
    return { name: username, shell: shell ?? '/bin/sh' }
  } catch {
    // A box may run under a uid that has no line in /etc/passwd, and userInfo throws then.
    return { name: agent.USER ?? agent.LOGNAME ?? String(process.getuid?.() ?? ''), shell: '/bin/sh' }
  }
}
