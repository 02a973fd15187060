// A TCP proxy between agent and coordinator that can cut the link in the ways that networks do.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type TunnelProxy = {
  url: string
  /** Connections that were accepted in all. */
  accepted(): number
  /** Half-open: what is open now stays open, and its bytes vanish in both directions. New connections work. */
  blackhole(): void
  /** Resets every connection that is open now. */
  reset(): void
  close(): Promise<void>
}

/** On a socket that is being shut down, Node's reset fails and leaves its handle open for ever. */
const cut = (socket: Socket) => (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy())

/** @param target the port of the coordinator, asked for each connection */
export async function startTunnelProxy(target: number | (() => number)): Promise<TunnelProxy> {
  type Link = { near: Socket; far: Socket; dropping: boolean }
  const links = new Set<Link>()
  let accepted = 0
  const server = createServer((near) => {
    accepted += 1
    const far = connect(typeof target === 'number' ? target : target(), '127.0.0.1')
    const link: Link = { near, far, dropping: false }
    links.add(link)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', (chunk) => {
        if (!link.dropping && !to.write(chunk)) from.pause()
      })
      to.on('drain', () => from.resume())
      from.on('error', () => undefined)
      from.on('close', () => {
        // Of a half-open link the other side stays, and stays ours to end.
        if (!link.dropping) to.destroy()
        if (to.destroyed) links.delete(link)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted: () => accepted,
    blackhole() {
      for (const link of links) link.dropping = true
    },
    reset() {
      for (const { near, far } of links) for (const socket of [near, far]) cut(socket)
    },
    async close() {
      for (const { near, far } of links) {
        near.destroy()
        far.destroy()
      }
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
