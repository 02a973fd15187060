// The listening socket that systemd has opened for the coordinator, as sd_listen_fds(3) describes.
import { StartError } from '../base/start-error.ts'

/** The first descriptor that a service manager passes. */
const FIRST_FD = 3

/**
 * Returns the descriptor; undefined: there is none. Removes the variables, which programs that this process starts must not
 * find.
 * @throws StartError for several sockets
 */
export function takeInheritedSocket(env: NodeJS.ProcessEnv, pid: number): number | undefined {
  const isForThisProcess = env.LISTEN_PID === String(pid)
  const count = Number(env.LISTEN_FDS)
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name]
  if (!isForThisProcess || !(count > 0)) return undefined
  if (count > 1)
    throw new StartError(
      `The service manager has passed ${count} sockets. Leave one ListenStream in boxwood.socket.`,
    )
  return FIRST_FD
}
