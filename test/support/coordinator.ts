// Starts a coordinator in this process, on a free port with its own data directory, for tests over HTTP.
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { removeTree } from '../../coordinator/providers/local/directories.ts'
import { type Overrides, startCoordinator } from '../../coordinator/server/app.ts'
import { loadConfig } from '../../coordinator/server/config.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { databaseEnv } from './database-env.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'
import { startFrontProxy } from './front-proxy.ts'
import { getOpenApiCheck } from './openapi-check.ts'
import { startReplicaProxy } from './replica-proxy.ts'
import { DEADLINE_MS, nextPollDelay } from './wait-until.ts'

export type CoordinatorOptions = Overrides & {
  /**
   * fake: in-memory machines whose agents reject every request. local: real boxes on this machine. joined: only machines
   * that join, with real agents. Default: fake.
   */
  machines?: 'fake' | 'local' | 'joined'
  /** The fake machines of an earlier coordinator on the same data. */
  infra?: FakeInfrastructure
  /** The data directory of an earlier coordinator. The teardown of the earlier coordinator removes the directory. */
  dataDir?: string
  env?: Record<string, string>
}

export type ApiResponse = {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
  json: any
}

export type RequestOptions = {
  /** null: send no key. Default: the owner's key. */
  key?: string | null
  headers?: Record<string, string>
}

/** Stops the coordinator and its boxes after the test. */
export async function startTestCoordinator(t: Test, options: CoordinatorOptions = {}) {
  const { machines = 'fake', infra = new FakeInfrastructure(), env = {}, ...overrides } = options
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'boxwood-test-'))
  const front = await startFrontProxy(t)
  const replicas = await startReplicaProxy(t)
  const settings = {
    BOXWOOD_LISTEN: '127.0.0.1:0',
    BOXWOOD_DATA: dataDir,
    BOXWOOD_LOG: 'silent',
    BOXWOOD_WARM: process.env.BOXWOOD_WARM ?? '0',
    ...databaseEnv(dataDir),
    ...front?.env,
    ...replicas?.env,
    ...env,
  }
  const fakes = {
    ...(machines === 'local' ? {} : { provider: infra.provider }),
    ...(machines === 'fake' ? { tunnels: infra.tunnels } : {}),
  }
  const coordinator = await startCoordinator(loadConfig(settings), { ...fakes, ...overrides })
  const others = (await replicas?.start(coordinator, settings, { ...fakes, ...overrides })) ?? []
  const url = replicas?.url ?? coordinator.url
  front?.setTarget(url)
  const key = readFileSync(join(dataDir, 'owner.key'), 'utf8').trim()
  let isClosed = false

  async function close(): Promise<void> {
    if (isClosed) return
    isClosed = true
    for (const instance of [...others, coordinator]) {
      if (machines === 'local') await instance.suspendBoxes('the test is complete')
      await instance.close()
    }
  }
  t.teardown(async () => {
    await close()
    // Not rm(): a box may have changed the permissions of its directories.
    if (options.dataDir === undefined) await removeTree(dataDir)
  })

  const checkResponse = await getOpenApiCheck(url)

  /**
   * Requests any path, and throws when the OpenAPI document does not describe the response. Sends strings and bytes unchanged,
   * and other bodies as JSON.
   */
  async function send(
    method: string,
    path: string,
    body?: unknown,
    { key: requestKey = key, headers = {} }: RequestOptions = {},
  ): Promise<ApiResponse> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(requestKey === null ? {} : { authorization: `Bearer ${requestKey}` }),
        ...(isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status } = response
    checkResponse(method, path, { status, headers: response.headers, text })
    return { status, headers: response.headers, text, json: parseJson(text) }
  }

  return {
    url,
    /** The URL of the pages in a browser: that of the proxy of the run, without a slash at its end. */
    pageUrl: front?.url ?? url,
    key,
    dataDir,
    infra,
    /** The coordinator that startCoordinator() returned. */
    instance: coordinator,
    close,
    /** Drains the coordinators of the run. See Coordinator. */
    drain: async (ms: number) => {
      await Promise.all([...others, coordinator].map((instance) => instance.drain(ms)))
    },
    send,
    /** Requests a control plane route: api('POST', '/boxes', {}). */
    api: (method: string, path: string, body?: unknown, options?: RequestOptions) =>
      send(method, `/api/v1${path}`, body, options),
    /** Requests an edge route: edge('apple', 'POST', '/exec', {command: 'id'}). */
    edge: (box: string, method: string, path: string, body?: unknown, options?: RequestOptions) =>
      send(method, `/v1/box/${box}${path}`, body, options),
    /** Polls the box until it has the observed state. */
    async waitForState(id: string, state: Box['observedState']): Promise<Box> {
      const startedAt = performance.now()
      for (;;) {
        const requestedAt = performance.now()
        const { json } = await send('GET', `/api/v1/boxes/${id}`)
        if (json.box?.observedState === state) return json.box
        const now = performance.now()
        if (now - startedAt > DEADLINE_MS)
          throw new Error(
            `timed out after ${DEADLINE_MS} ms: box is ${json.box?.observedState}, not ${state}: ${JSON.stringify(json.job)}`,
          )
        await new Promise((resolve) => setTimeout(resolve, nextPollDelay(now - requestedAt)))
      }
    },
  }
}

export type TestCoordinator = Awaited<ReturnType<typeof startTestCoordinator>>

function parseJson(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
