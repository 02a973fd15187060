// A Unix socket for the agents of local boxes, so that no other program can accept their connections.
import { constants } from 'node:fs'
import { chmod, mkdir, open, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'

export const AGENT_SOCKET_FILE = 'agent.sock'

/**
 * Accepts connections on the socket `agent.sock` in the directory and passes them to the HTTP server. The directory is
 * created. Boxes mount the directory, not the socket, because each coordinator creates a new socket.
 *
 * All programs on the socket share the limit of one address (connections.ts): Node does not expose SO_PEERCRED, and where
 * the coordinator is not root, all boxes have its user id. One box still does not keep the agents of others out: the
 * connections of accepted agents do not count, and a new connection replaces the oldest one on which no agent was accepted.
 * agents/tunnel/ limits the connections of an accepted agent per box.
 */
export async function listenOnAgentSocket(dir: string, server: Server): Promise<{ close(): Promise<void> }> {
  await mkdir(dir, { recursive: true })
  await chmod(dir, 0o711)
  await rm(join(dir, AGENT_SOCKET_FILE), { force: true })
  const handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY)
  const listener = createServer({ allowHalfOpen: true }, (socket) => server.emit('connection', socket))
  try {
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      // The path of a socket has at most 107 bytes. The path of the data directory may be longer.
      listener.listen(`/proc/self/fd/${handle.fd}/${AGENT_SOCKET_FILE}`, resolve)
    })
    // Each box may have its own uid.
    await chmod(join(dir, AGENT_SOCKET_FILE), 0o666)
  } catch (error) {
    await handle.close()
    throw error
  }
  return {
    // Closing the listener removes the socket through the directory's descriptor.
    async close() {
      await new Promise((resolve) => listener.close(resolve))
      await handle.close()
    },
  }
}
