// The socket on which `boxwood backup` requests a backup from the running coordinator: only the coordinator can read its
// database. The socket is in a directory that only its user can enter, so requests need no credentials. One request per
// connection, as a line of JSON; lines about the progress come before the response, whose files exist until the client
// disconnects.
import { constants } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { StartError } from '../../base/start-error.ts'
import { backupDescription } from './format.ts'
import { type BackupOptions, type BackupSource, type PreparedBackup, prepareBackup } from './prepare.ts'
import { type BackupProgress, backupProgress, type OnProgress } from './progress.ts'

const SOCKET_DIR = 'backup-socket'
const SOCKET_FILE = 'backup.sock'
const MAX_REQUEST_BYTES = 1024
const MAX_CONNECTIONS = 16

const request = z.object({
  includeBoxes: z.boolean(),
  // A client of an earlier version reads only one line.
  progress: z.boolean().default(false),
})
type BackupRequest = z.infer<typeof request>

const response = z.union([
  z.object({ error: z.string() }),
  z.object({ description: backupDescription, filesFile: z.string() }),
])
type BackupResponse = z.infer<typeof response>
/** The lines before the response, if the client has requested them. */
const message = z.union([z.object({ progress: backupProgress }), response])
type BackupMessage = z.infer<typeof message>

/** Serves one backup at a time. */
export async function listenOnBackupSocket(source: BackupSource): Promise<{ close(): Promise<void> }> {
  const closing = new AbortController()
  const running = new Set<Promise<void>>()
  let isBusy = false

  async function serve(socket: Socket): Promise<void> {
    const disconnected = new AbortController()
    socket.on('error', () => disconnected.abort())
    const released = new Promise<void>((resolve) => {
      socket.on('end', resolve)
      socket.on('close', () => {
        disconnected.abort()
        resolve()
      })
    })
    const signal = AbortSignal.any([closing.signal, disconnected.signal])
    signal.addEventListener('abort', () => socket.destroy())
    const options = await readRequest(socket)
    if (options === null) return void socket.destroy()
    const { includeBoxes } = options
    const onProgress = options.progress ? (progress: BackupProgress) => send(socket, { progress }) : undefined
    if (isBusy) return respond(socket, { error: 'Another backup is running. Try again when it is complete.' })
    isBusy = true
    let prepared: PreparedBackup | null = null
    try {
      prepared = await prepareBackup(source, { includeBoxes, onProgress, signal })
      const { description, filesFile } = prepared
      send(socket, { description, filesFile })
      socket.resume()
      await released
    } catch (error) {
      if (!signal.aborted) {
        source.log.warn({ err: error }, 'a backup has failed')
        respond(socket, { error: (error as Error).message })
      }
    } finally {
      await prepared?.release()
      isBusy = false
      socket.end()
    }
  }

  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const work = serve(socket).finally(() => running.delete(work))
    running.add(work)
  })
  server.maxConnections = MAX_CONNECTIONS
  const dir = join(source.dataDir, SOCKET_DIR)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await rm(join(dir, SOCKET_FILE), { force: true })
  const handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(socketPath(handle.fd), resolve)
    })
  } catch (error) {
    await handle.close()
    throw error
  }
  return {
    async close() {
      closing.abort(new Error('The coordinator is shutting down.'))
      await new Promise((resolve) => server.close(resolve))
      await Promise.all(running)
      await handle.close()
    },
  }
}

/** The path of a socket has at most 107 bytes. The path of the data directory may be longer. */
const socketPath = (directoryFd: number): string => `/proc/self/fd/${directoryFd}/${SOCKET_FILE}`

const send = (socket: Socket, line: BackupMessage): void => void socket.write(`${JSON.stringify(line)}\n`)

const respond = (socket: Socket, message: BackupResponse): void =>
  void socket.end(`${JSON.stringify(message)}\n`)

/** null: the request is not valid, or the client has disconnected. */
async function readRequest(socket: Socket): Promise<BackupRequest | null> {
  let text = ''
  for await (const block of socket.iterator({ destroyOnReturn: false })) {
    text += String(block)
    if (text.includes('\n') || text.length > MAX_REQUEST_BYTES) break
  }
  try {
    return request.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** Requests a backup from the running coordinator. The files exist until the release. Throws StartError. */
export async function requestBackup(
  dataDir: string,
  { includeBoxes, onProgress }: BackupOptions,
  signal: AbortSignal,
): Promise<PreparedBackup> {
  signal.throwIfAborted()
  const socket = await connect(dataDir)
  socket.on('error', () => undefined)
  const abort = () => socket.destroy()
  signal.addEventListener('abort', abort)
  const sent: BackupRequest = { includeBoxes, progress: onProgress !== undefined }
  socket.write(`${JSON.stringify(sent)}\n`)
  const received = await readResponse(socket, onProgress).catch((error: unknown) => {
    socket.destroy()
    signal.throwIfAborted()
    throw error
  })
  if ('error' in received) {
    socket.destroy()
    throw new StartError(received.error)
  }
  socket.resume()
  return {
    ...received,
    async release() {
      signal.removeEventListener('abort', abort)
      const isConnected = !socket.destroyed && !socket.readableEnded
      // The coordinator closes the connection when it has removed the copies.
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.end()
      if (isConnected) await closed
      else throw new StartError('The coordinator has stopped before the backup was complete. Try again.')
    },
  }
}

async function connect(dataDir: string): Promise<Socket> {
  const handle = await open(join(dataDir, SOCKET_DIR), constants.O_RDONLY | constants.O_DIRECTORY).catch(
    (error: NodeJS.ErrnoException) => {
      throw new StartError(
        error.code === 'EACCES'
          ? `Cannot use the coordinator of ${dataDir}: permission denied. Run boxwood as the user of the coordinator.`
          : `The running coordinator of ${dataDir} accepts no backups: ${error.message}. Stop it, and try again.`,
      )
    },
  )
  try {
    return await new Promise<Socket>((resolve, reject) => {
      const socket = createConnection(socketPath(handle.fd))
      socket.once('connect', () => resolve(socket)).once('error', reject)
    })
  } catch (error) {
    throw new StartError(
      `The running coordinator of ${dataDir} accepts no backups: ${(error as Error).message}. Stop it, and try again.`,
    )
  } finally {
    await handle.close()
  }
}

async function readResponse(socket: Socket, onProgress?: OnProgress): Promise<BackupResponse> {
  for await (const line of createInterface({ input: socket })) {
    const received = message.parse(JSON.parse(line))
    if (!('progress' in received)) return received
    onProgress?.(received.progress)
  }
  throw new StartError('The coordinator has stopped before the backup was prepared. Try again.')
}
