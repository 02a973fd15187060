// A TCP proxy in front of several coordinators: each connection goes to another one than that before, and never to one that does
// not listen, or that is not ready.
import { once } from 'node:events'
import { type ClientRequest, get } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** As in install/proxies/Caddyfile-replicas. */
const HEALTH_INTERVAL_MS = 2_000

export type BalancingProxy = {
  url: string
  /** The ports of the coordinators. Those that do not listen, or whose last GET /readyz had another status than 200, get no connections. */
  targets: number[]
  /** The connections that have been closed because no coordinator listens. */
  readonly refused: number
  close(): Promise<void>
}

export async function startBalancingProxy(): Promise<BalancingProxy> {
  const targets: number[] = []
  const sockets = new Set<Socket>()
  /** The ports of the coordinators that are not ready. */
  const unready = new Set<number>()
  let next = 0
  let refused = 0

  function track(socket: Socket): Socket {
    sockets.add(socket)
    socket.setNoDelay(true).once('close', () => sockets.delete(socket))
    return socket
  }

  function serve(downstream: Socket, order: readonly number[]): void {
    const [port, ...others] = order
    if (port === undefined) {
      refused += 1
      downstream.destroy()
      return
    }
    const upstream = track(connect({ port, host: '127.0.0.1', allowHalfOpen: true }))
    const retry = () => serve(downstream, others)
    upstream.once('error', retry)
    upstream.once('connect', () => {
      upstream.off('error', retry)
      join(downstream, upstream)
    })
  }

  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (downstream) => {
    track(downstream).on('error', () => undefined)
    next += 1
    const ready = targets.filter((port) => !unready.has(port))
    const first = next % Math.max(1, ready.length)
    serve(downstream, [...ready.slice(first), ...ready.slice(0, first)])
  })
  const checks = new Set<ClientRequest>()
  const timer = setInterval(() => {
    for (const check of checks) check.destroy()
    for (const port of targets) checkHealth(port)
  }, HEALTH_INTERVAL_MS).unref()

  function checkHealth(port: number): void {
    const check = get({ port, host: '127.0.0.1', path: '/readyz', agent: false })
    checks.add(check)
    const setReady = (isReady: boolean) => {
      if (isReady) unready.delete(port)
      else unready.add(port)
    }
    check.once('response', (response) => {
      response.resume()
      setReady(response.statusCode === 200)
    })
    // One that does not listen, or does not respond before the next check.
    check.on('error', () => setReady(false))
    check.once('close', () => checks.delete(check))
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets,
    get refused() {
      return refused
    },
    async close() {
      clearInterval(timer)
      for (const check of checks) check.destroy()
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function join(downstream: Socket, upstream: Socket): void {
  for (const [from, to] of [
    [downstream, upstream],
    [upstream, downstream],
  ] as const) {
    from.on('error', () => undefined)
    from.once('close', () => to.destroy())
    from.pipe(to)
  }
  if (downstream.destroyed) upstream.destroy()
}
