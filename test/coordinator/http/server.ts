// An HTTP server with a few routes of its own, for the tests of what holds for every route.
import { join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import { type Found, hashOf } from '../../../coordinator/account/keys.ts'
import { openDatabase } from '../../../coordinator/db/open.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { listen } from '../../../coordinator/http/listen.ts'
import type { Route } from '../../../coordinator/http/route.ts'
import { createHttpServer } from '../../../coordinator/http/server.ts'
import type { Clock } from '../../../shared/clock.ts'
import { tempFolder } from '../../support/temp-folder.ts'

export const actor: Actor = {
  keyId: 'key_1',
  keyKind: 'api',
  keyExpiresAt: null,
  boxIds: null,
  access: null,
  workspaceId: 'ws_1',
  userId: 'usr_1',
  role: 'owner',
}

export type TestServerOptions = {
  control?: Route[]
  edge?: Route[]
  /** Key → who it is. */
  keys?: Record<string, Found>
  clock?: Clock
}

/** Listens on a free port until the test ends. `send` uses the key dcp_owner unless told otherwise. */
export async function testServer(t: Test, options: TestServerOptions = {}) {
  const { control = [], edge = [], keys = {}, clock = { now: () => Date.now() } } = options
  const folder = tempFolder(t, 'http')
  const db = await openDatabase({ kind: 'sqlite', file: join(folder, 'test.db') })
  for (const id of ['ws_1', 'ws_2'])
    await db
      .insertInto('workspaces')
      .values({ id, name: id, zero_data_retention: 0, created_at: 0 })
      .execute()
  const found = new Map<string, Found>(
    Object.entries({ dcp_owner: { actor }, ...keys }).map(([key, whose]) => [hashOf(key), whose]),
  )
  const logged: string[] = []
  const listening = await listen({ host: '127.0.0.1', port: 0 })
  const http = await createHttpServer({
    listening,
    log: pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) }),
    context: { db, clock, findKey: async (hash) => found.get(hash) ?? { refused: 'unknown' } },
    control,
    edge,
    boxes: {
      handleUpgrade: (_request, socket) => socket.end('HTTP/1.1 418 Tunnel\r\n\r\n'),
      handleTransfer: (_request, response) => response.writeHead(418).end(),
    },
    health: { unready: async () => null },
    publicUrl: 'http://boxes.test',
  })
  t.teardown(async () => {
    await http.close()
    await db.destroy()
  })

  async function send(method: string, path: string, init: SendOptions = {}) {
    const { body, headers = {}, key = 'dcp_owner' } = init
    const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
    const response = await fetch(listening.url + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(raw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: jsonOf(text) }
  }
  return { url: listening.url, http, db, logged, send }
}

type SendOptions = { body?: unknown; headers?: Record<string, string>; key?: string | null }

// biome-ignore lint/suspicious/noExplicitAny: what a client parses is whatever the server sent.
function jsonOf(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
