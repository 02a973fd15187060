// The files from which the agent of a box reads the coordinator's URL and its own token before each connection.
import { join } from 'node:path'
import { AGENT_SOCKET_FILE } from '../../http/agent-socket.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import type { LocalHost } from './host.ts'
import type { Network } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, type Machine, writeAtomically } from './machine-file.ts'

const SOCKET_URL = `unix:${VIEW_PATHS.socketDir}/${AGENT_SOCKET_FILE}`

/** The agent of a box with its own network uses the socket of the coordinator, if there is one, instead of the URL. */
export const chooseUrl = (host: LocalHost, network: Network, coordinatorUrl: string): string =>
  network === 'own' && host.options.socketDir != null ? SOCKET_URL : coordinatorUrl

/** Writes the token and the URL. After a power loss, the files may be empty: the next start of the machine writes them again. */
export async function writeConnectionFiles(
  paths: BoxPaths,
  { url, token }: { url: string; token: string },
  uid: number | null,
): Promise<void> {
  await writeAtomically(join(paths.state, 'token'), token, { owner: uid })
  await writeAtomically(join(paths.state, 'url'), url, { owner: uid })
}

/** Updates the URL for the agents that run: a restarted coordinator may have another one. Logs the failures. */
export async function updateCoordinatorUrls(
  host: LocalHost,
  boxesDir: string,
  machines: readonly Machine[],
): Promise<void> {
  const { coordinatorUrl, log } = host.options
  for (const { boxId, uid, isolation } of machines) {
    const { state } = boxPaths(boxesDir, boxId)
    // The isolation of a machine with a damaged file is unknown: assume that of new machines.
    const url = chooseUrl(host, isolation?.network ?? host.choice.network, coordinatorUrl)
    await writeAtomically(join(state, 'url'), url, { owner: uid }).catch((err: unknown) =>
      log.warn({ boxId, err }, 'failed to write the coordinator URL for a box'),
    )
  }
}
