// Ensures one agent per state directory: the lock is a unix socket on which only a running process can listen.
import { once } from 'node:events'
import { open, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'

export type Lock = { release(): Promise<void> }

/** Acquires the lock, or throws when a running agent holds it. The stale socket of a killed agent is removed. */
export async function lockDirectory(dir: string): Promise<Lock> {
  // A unix socket address has at most 107 bytes: the path through a descriptor is always short enough.
  const handle = await open(dir, 'r')
  const path = `/proc/self/fd/${handle.fd}/lock`
  try {
    const server = await listen(path).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error
      if (await isListening(path))
        throw new Error(
          `another agent is running with the state directory ${dir}; stop it or set BOXWOOD_STATE`,
        )
      await unlink(path)
      return listen(path)
    })
    return {
      async release() {
        // server.close() unlinks the socket by its path, so the descriptor must stay open until then.
        await new Promise((resolve) => server.close(resolve))
        await handle.close()
      },
    }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function listen(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  server.listen(path)
  await once(server, 'listening')
  server.unref()
  return server
}

async function isListening(path: string): Promise<boolean> {
  const socket = createConnection(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
