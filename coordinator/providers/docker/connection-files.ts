// The files in the state volume of a box that its agent reads: the token, the URL and the settings.
import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'
import { AGENT_SOCKET_FILE } from '../../http/agent-socket.ts'
import { CONTAINER_PATHS, SETTINGS_FILE } from '../container/paths.ts'
import { formatSettings } from '../container/settings-file.ts'
import type { Engine } from './engine.ts'
import { getContainerName } from './names.ts'

export const SOCKET_URL = `unix:${CONTAINER_PATHS.socketDir}/${AGENT_SOCKET_FILE}`

export type StateFiles = Readonly<Record<string, string>>

export const createSettings = (variables: Readonly<Record<string, string>>): StateFiles => ({
  [SETTINGS_FILE]: formatSettings(variables),
})

/** Writes into the state volume of a container, which may run, be paused or have stopped. */
export async function writeStateFiles({ http }: Engine, boxId: string, files: StateFiles): Promise<void> {
  const stream = pack()
  for (const [name, content] of Object.entries(files))
    stream.entry({ name, mode: 0o600, mtime: new Date() }, content)
  stream.finalize()
  await http.json({
    method: 'PUT',
    path: `/containers/${getContainerName(boxId)}/archive`,
    query: { path: CONTAINER_PATHS.state },
    headers: { 'content-type': 'application/x-tar' },
    content: await buffer(stream),
  })
}
