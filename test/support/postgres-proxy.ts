// A proxy in front of a Postgres server on a unix socket, for one of several coordinators: the network between them can break.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createTempDir } from './temp-dir.ts'

const SOCKET_FILE = '.s.PGSQL.5432'

export type PostgresProxy = {
  /** The URL of the database, through the proxy. */
  url: string
  /** From now on all bytes are lost, in both directions. New connections open, and get no response. */
  cut(): void
  /** New connections work. Those before remain half-open. */
  repair(): void
}

/** @param url of the database: postgres://user@directory/name */
export async function startPostgresProxy(t: Test, url: string): Promise<PostgresProxy> {
  const [, user = '', directory = '', name = ''] = /^postgres:\/\/(\w+)@([^/]+)\/(\w+)$/.exec(url) ?? []
  const dir = createTempDir(t, 'pg')
  const links = new Set<{ isCut: boolean; sockets: readonly Socket[] }>()
  let isCut = false
  const server = createServer((downstream) => {
    const upstream = connect(join(decodeURIComponent(directory), SOCKET_FILE))
    const link = { isCut, sockets: [downstream, upstream] }
    links.add(link)
    for (const [from, to] of [
      [downstream, upstream],
      [upstream, downstream],
    ] as const) {
      from.on('error', () => undefined)
      from.on('data', (chunk) => {
        if (!link.isCut) to.write(chunk)
      })
      from.on('close', () => {
        if (!link.isCut) to.destroy()
        if (to.destroyed) links.delete(link)
      })
    }
  })
  server.listen(join(dir, SOCKET_FILE))
  await once(server, 'listening')
  t.teardown(async () => {
    for (const { sockets } of links) for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `postgres://${user}@${encodeURIComponent(dir)}/${name}`,
    cut() {
      isCut = true
      for (const link of links) link.isCut = true
    },
    repair() {
      isCut = false
    },
  }
}
