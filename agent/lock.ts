// One agent for one state folder: a unix socket in it that only a living process can be listening on.
import { once } from 'node:events'
import { open, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'

export type Lock = { release(): Promise<void> }

/** Takes the folder, or throws when a living agent holds it. What a killed one left behind is cleared away. */
export async function lockFolder(folder: string): Promise<Lock> {
  // Through a descriptor, because the address of a unix socket holds 107 bytes at most.
  const handle = await open(folder, 'r')
  const path = `/proc/self/fd/${handle.fd}/lock`
  try {
    const server = await listen(path).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error
      if (await someoneListens(path)) throw new Error(`another agent is running on ${folder}`)
      await unlink(path)
      return listen(path)
    })
    return {
      async release() {
        // Closing removes the socket, so the descriptor it is found by must outlive it.
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

async function someoneListens(path: string): Promise<boolean> {
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
