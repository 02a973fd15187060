// Reads from /proc how a running coordinator was started.
import { readFileSync } from 'node:fs'

/** The variables of a coordinator, those of its libraries and of AWS, and those of the commands of engines. */
const VARIABLE =
  /^(BOXWOOD_|OTEL_|DOCKER_|INCUS_|PG[A-Z]+$|AWS_(ENDPOINT_URL_STS|REGION)$|CONTAINER_HOST$|NODE_EXTRA_CA_CERTS$|TMPDIR$|XDG_RUNTIME_DIR$)/
/** Variables that concern only the process that started the coordinator. */
const OF_PARENT = ['BOXWOOD_COMMAND']

/** The variables with which a process of this user was started, as far as a coordinator reads them. */
export function readEnvironment(pid: number): Record<string, string> {
  const entries = read(pid, 'environ')
    .split('\0')
    .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)] as const)
  return Object.fromEntries(entries.filter(([name]) => VARIABLE.test(name) && !OF_PARENT.includes(name)))
}

/** The command that restarts the service of systemd that runs the process; null: it runs in no service for Boxwood. */
export const findRestartCommand = (pid: number): string | null => parseCgroup(read(pid, 'cgroup'))

/** @param text of /proc/PID/cgroup. Shells and terminals may also run in services, with other names. */
export function parseCgroup(text: string): string | null {
  const [path = '', unit] = /^.*\/([^/\n]*boxwood[^/\n]*\.service)$/m.exec(text) ?? []
  if (unit === undefined) return null
  return `systemctl ${/\/user@\d+\.service\//.test(path) ? '--user ' : ''}restart ${unit}`
}

/** Empty without the permission, and when the process has exited. */
function read(pid: number, file: 'environ' | 'cgroup'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
