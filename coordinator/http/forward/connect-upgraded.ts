// Connects a client and a server after an upgrade, such as to a WebSocket.
import type { Duplex } from 'node:stream'
import type { HeaderPair } from './raw-headers.ts'

type Side = {
  stream: Duplex
  /** What was received after the headers. */
  head: Buffer
}

export type UpgradedConnection = {
  viewer: Side
  box: Side
  statusMessage: string
  headers: readonly HeaderPair[]
  /** Changes what the box sends. Default: it is not changed. */
  transform?: Duplex | undefined
}

/** Sends the response to the viewer. A FIN of one side ends that direction only. */
export function connectUpgraded(connection: UpgradedConnection): void {
  const { viewer, box, statusMessage, headers, transform } = connection
  const lines = [`HTTP/1.1 101 ${statusMessage}`, ...headers.map(([name, value]) => `${name}: ${value}`)]
  viewer.stream.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  connectDirection(viewer, box.stream)
  connectDirection(box, viewer.stream, transform)
}

function connectDirection({ stream, head }: Side, target: Duplex, transform?: Duplex): void {
  stream.on('error', () => stream.destroy())
  stream.once('close', () => {
    // After both directions have ended, the target may still have bytes to send.
    if (!stream.readableEnded || !stream.writableFinished) target.destroy()
  })
  if (stream.destroyed) return void target.destroy()
  const next = transform ?? target
  transform?.on('error', () => target.destroy())
  transform?.pipe(target)
  if (head.length > 0) next.write(head)
  stream.pipe(next)
}
