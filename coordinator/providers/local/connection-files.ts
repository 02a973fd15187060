// The files from which the agent of a box reads the coordinator's URL and its own token before each connection.

import { join } from 'node:path'
import { AGENT_SOCKET_FILE } from '../../http/agent-socket.ts'
import { writeAtomically } from '../parts/write-atomically.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import type { LocalHost } from './host.ts'
import { type BoxPaths, boxPaths, type Machine } from './machine-file.ts'

const VIEW_SOCKET_URL = `unix:${VIEW_PATHS.socketDir}/${AGENT_SOCKET_FILE}`

/** The path of a socket has at most 107 bytes. The agent's URL has no colon after `unix:`. */
const isUsableSocketPath = (path: string): boolean => Buffer.byteLength(path) <= 107 && !path.includes(':')

/** Whether a box that is launched at the level sees the socket of the coordinator. */
export function seesSocket({ options }: LocalHost, level: Machine['level']): boolean {
  if (options.socketDir == null) return false
  return level !== 'process' || isUsableSocketPath(join(options.socketDir, AGENT_SOCKET_FILE))
}

/**
 * The agents use the socket of the coordinator instead of its port wherever they see the socket: when no coordinator runs, any
 * program of the machine may listen on the port, also one in a box.
 */
export function chooseUrl(
  host: LocalHost,
  { level, hasSocket }: Pick<Machine, 'level' | 'hasSocket'>,
  coordinatorUrl: string,
): string {
  const { socketDir } = host.options
  if (!hasSocket || socketDir == null) return coordinatorUrl
  return level === 'process' ? `unix:${join(socketDir, AGENT_SOCKET_FILE)}` : VIEW_SOCKET_URL
}

/**
 * Writes the token and the URL. After a power loss, the files may be empty: the next start of the machine writes them again.
 * @param connection.token null: the machine has none yet
 */
export async function writeConnectionFiles(
  paths: BoxPaths,
  { url, token }: { url: string; token: string | null },
  uid: number | null,
): Promise<void> {
  if (token !== null) await writeAtomically(join(paths.state, 'token'), token, { owner: uid })
  await writeAtomically(join(paths.state, 'url'), url, { owner: uid })
}

/** Updates the URL for the agents that run: a restarted coordinator may have another one. Logs the failures. */
export async function updateCoordinatorUrls(
  host: LocalHost,
  boxesDir: string,
  machines: readonly Machine[],
): Promise<void> {
  const { coordinatorUrl, log } = host.options
  for (const machine of machines) {
    const { boxId, uid, isolation } = machine
    const { state } = boxPaths(boxesDir, boxId)
    const { level } = host.choice
    // The isolation of a machine with a damaged file is unknown: assume that of new machines.
    const seen = isolation === null ? { level, hasSocket: seesSocket(host, level) } : machine
    const url = chooseUrl(host, seen, coordinatorUrl)
    await writeAtomically(join(state, 'url'), url, { owner: uid }).catch((err: unknown) =>
      log.warn({ boxId, err }, 'failed to write the coordinator URL for a box'),
    )
  }
}
