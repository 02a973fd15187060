// Connects a viewer and a box after an upgrade, such as to a WebSocket.
import type { Duplex } from 'node:stream'
import type { HeaderPair } from '../headers/raw-headers.ts'

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
}

/** Sends the response to the viewer. A FIN of one side ends that direction only. */
export function connectUpgraded({ viewer, box, statusMessage, headers }: UpgradedConnection): void {
  const lines = [`HTTP/1.1 101 ${statusMessage}`, ...headers.map(([name, value]) => `${name}: ${value}`)]
  viewer.stream.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  connectDirection(viewer, box.stream)
  connectDirection(box, viewer.stream)
}

function connectDirection({ stream, head }: Side, target: Duplex): void {
  stream.on('error', () => stream.destroy())
  stream.once('close', () => {
    // After both directions have ended, the target may still have bytes to send.
    if (!stream.readableEnded || !stream.writableFinished) target.destroy()
  })
  if (stream.destroyed) return void target.destroy()
  if (head.length > 0) target.write(head)
  stream.pipe(target)
}
