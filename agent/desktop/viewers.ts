// The viewers of the desktop: each has an x11vnc of its own, whose VNC bytes go over a dial-back connection.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { TcpOverWebSocket } from '../../shared/tcp-over-websocket.ts'
import type { ActivityTracker } from '../activity-tracker.ts'
import { SHELL } from '../exec/shell.ts'
import { toStartError } from '../exec/start-error.ts'
import type { WebSocketDialer } from '../tunnel/websocket-dialer.ts'
import type { Desktop, ViewerTarget } from './desktop.ts'

export type ViewersOptions = {
  desktop: Desktop
  /** Its connections are paused. */
  portDialer: Pick<WebSocketDialer, 'connect'>
  activity: Pick<ActivityTracker, 'touch'>
  log: Pick<Logger, 'debug'>
}

export type Viewers = {
  /**
   * Starts a viewer, and connects it to the dial-back connection with this id later.
   * @throws ApiError not_found when no desktop is running; desktop_not_installed, exec_failed
   */
  connect(id: string): Promise<void>
  /** Disconnects all viewers. */
  close(): void
}

/**
 * x11vnc as a server of inetd: it serves descriptor 0, and listens on no socket that another process could connect to. It
 * exits with the connection, or with the X server.
 */
const createArguments = (display: string): string[] => [
  ...['-inetd', '-q', '-norc', '-nopw', '-shared', '-display', display, '-noipv6', '-no6'],
  // Otherwise, properties of windows could make x11vnc run commands or open ports.
  ...['-noremote', '-nocmds'],
  // Without the heuristics that draw frames instead of windows, and guess scrolling.
  ...['-nowf', '-noscr', '-nobell', '-repeat', '-cursor', 'most'],
]
/** Descriptor 0 of a child of Node can only be read. */
const COPY_DESCRIPTOR = 'exec "$@" <&3 >&3 3>&-'

export function createViewers({ desktop, portDialer, activity, log }: ViewersOptions): Viewers {
  const open = new Set<Duplex>()
  /** Viewers whose x11vnc is being started. */
  let startingCount = 0
  let isClosed = false
  desktop.countViewers = () => open.size

  async function relay(id: string, server: Duplex): Promise<void> {
    const connection = new TcpOverWebSocket(await portDialer.connect(id))
    connection.on('error', () => undefined)
    // VNC has no half-open connections.
    connection.once('end', () => server.destroy()).once('close', () => server.destroy())
    server.once('end', () => connection.destroy()).once('close', () => connection.destroy())
    if (server.destroyed) return void connection.destroy()
    // A client that watches an unchanged screen does not keep the box from being idle.
    connection.on('data', activity.touch)
    server.on('data', activity.touch)
    connection.pipe(server)
    server.pipe(connection)
  }

  return {
    async connect(id) {
      if (open.size + startingCount >= LIMITS.desktop.viewers)
        throw new ApiError(
          'exec_failed',
          `The desktop has ${LIMITS.desktop.viewers} viewers. Close one first.`,
        )
      startingCount += 1
      const server = await desktop
        .openViewer()
        .then(startX11vnc)
        .finally(() => {
          startingCount -= 1
        })
      open.add(server)
      if (isClosed) server.destroy()
      server.once('close', () => open.delete(server))
      server.on('error', () => undefined)
      relay(id, server).catch((err: unknown) => {
        log.debug({ err }, 'failed to open the dial-back connection of a viewer')
        server.destroy()
      })
    },
    close() {
      isClosed = true
      for (const server of open) server.destroy()
    },
  }
}

/** Destroying the stream ends the process. */
async function startX11vnc({ file, display, env }: ViewerTarget): Promise<Duplex> {
  const child = spawn(SHELL, ['-c', COPY_DESCRIPTOR, 'sh', file, ...createArguments(display)], {
    cwd: '/',
    env,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw toStartError(error)
  }
  const stream = child.stdio[3] as Duplex
  stream.once('close', () => child.kill())
  return stream
}
