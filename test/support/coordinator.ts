// A real coordinator in this process, on a free port with a data folder of its own, for tests over HTTP.
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type Overrides, startCoordinator } from '../../coordinator/app.ts'
import { loadConfig } from '../../coordinator/config.ts'
import { removeTree } from '../../coordinator/lifecycle/providers/local/folders.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { FakeWorld } from './fake-provider.ts'

export type CoordinatorOptions = Overrides & {
  /** fake: machines in memory, whose agents answer nothing. local: real boxes on this machine. */
  machines?: 'fake' | 'local'
  /** The world of an earlier coordinator on the same data. */
  world?: FakeWorld
  /** Of an earlier coordinator; it is removed with the test that made it. */
  dataDir?: string
  env?: Record<string, string>
}

export type Answer = {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: what a client parses is whatever the server sent.
  json: any
}

export type RequestOptions = {
  /** null: no key at all. Absent: the owner's. */
  key?: string | null
  headers?: Record<string, string>
}

/** Stopped when the test ends, boxes and all. */
export async function testCoordinator(t: Test, options: CoordinatorOptions = {}) {
  const { machines = 'fake', world = new FakeWorld(), env = {}, ...overrides } = options
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'boxwood-test-'))
  const config = loadConfig({
    BOXWOOD_LISTEN: '127.0.0.1:0',
    BOXWOOD_DATA: dataDir,
    BOXWOOD_LOG: 'silent',
    ...env,
  })
  const fakes = machines === 'fake' ? { provider: world.provider, tunnels: world.tunnels } : {}
  const coordinator = await startCoordinator(config, { ...fakes, ...overrides })
  const { url } = coordinator
  const key = readFileSync(join(dataDir, 'owner.key'), 'utf8').trim()
  let closed = false

  async function close(): Promise<void> {
    if (closed) return
    closed = true
    if (machines === 'local') await coordinator.suspendBoxes('the test ended')
    await coordinator.close()
  }
  t.teardown(async () => {
    await close()
    // Whatever a test let its box do to its folders.
    if (options.dataDir === undefined) await removeTree(dataDir)
  })

  /** Any path of the coordinator. A string or bytes go as they are, anything else as JSON. */
  async function send(
    method: string,
    path: string,
    body?: unknown,
    { key: whose = key, headers = {} }: RequestOptions = {},
  ): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(whose === null ? {} : { authorization: `Bearer ${whose}` }),
        ...(raw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parsed(text) }
  }

  return {
    url,
    key,
    dataDir,
    world,
    coordinator,
    close,
    send,
    /** A route of the control plane: api('POST', '/boxes', {}). */
    api: (method: string, path: string, body?: unknown, request?: RequestOptions) =>
      send(method, `/api/v1${path}`, body, request),
    /** A route of the edge: edge('apple', 'POST', '/exec', {command: 'id'}). */
    edge: (box: string, method: string, path: string, body?: unknown, request?: RequestOptions) =>
      send(method, `/v1/box/${box}${path}`, body, request),
    /** Polls as clients do, until the box is observed in the state. */
    async until(id: string, state: Box['observedState'], ms = 20_000): Promise<Box> {
      const deadline = performance.now() + ms
      for (;;) {
        const { json } = await send('GET', `/api/v1/boxes/${id}`)
        if (json.box?.observedState === state) return json.box
        if (performance.now() > deadline)
          throw new Error(`The box is ${json.box?.observedState}, not ${state}: ${JSON.stringify(json.job)}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
  }
}

export type TestCoordinator = Awaited<ReturnType<typeof testCoordinator>>

function parsed(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
