// A TCP proxy between agent and coordinator that simulates network failures.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type TunnelProxy = {
  url: string
  /** Makes the open connections half-open: they stay open, and drop all bytes in both directions. New ones work. */
  blackhole(): void
  /** Resets all open connections. */
  reset(): void
  close(): Promise<void>
}

/** resetAndDestroy() fails on a socket that is shutting down, and leaks its handle. */
const resetSocket = (socket: Socket) => (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy())

/** @param target the coordinator's port; a function is called for each connection */
export async function startTunnelProxy(target: number | (() => number)): Promise<TunnelProxy> {
  type Link = { downstream: Socket; upstream: Socket; isBlackhole: boolean }
  const links = new Set<Link>()
  const server = createServer((downstream) => {
    const upstream = connect(typeof target === 'number' ? target : target(), '127.0.0.1')
    const link: Link = { downstream, upstream, isBlackhole: false }
    links.add(link)
    for (const [from, to] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', (chunk) => {
        if (!link.isBlackhole && !to.write(chunk)) from.pause()
      })
      to.on('drain', () => from.resume())
      from.on('error', () => undefined)
      from.on('close', () => {
        // The other side of a half-open link stays open, until reset() or close().
        if (!link.isBlackhole) to.destroy()
        if (to.destroyed) links.delete(link)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    blackhole() {
      for (const link of links) link.isBlackhole = true
    },
    reset() {
      for (const { downstream, upstream } of links)
        for (const socket of [downstream, upstream]) resetSocket(socket)
    },
    async close() {
      for (const { downstream, upstream } of links) {
        downstream.destroy()
        upstream.destroy()
      }
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
