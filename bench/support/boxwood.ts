// Starts a coordinator with its first box as `npm start` does, and provides a client with persistent connections.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Box } from '../../shared/api/boxes.ts'
import { findAgentPid } from '../../test/support/find-agent-process.ts'
import { PROJECT_DIR, START_SCRIPT } from '../../test/support/project.ts'
import { waitUntil } from '../../test/support/wait-until.ts'
import { RAISED_LIMITS } from './edge-limits.ts'
import { getPid, terminate } from './processes.ts'

export type Boxwood = {
  url: string
  /** The owner's API key. */
  key: string
  dataDir: string
  box: Box
  coordinatorPid: number
  agentPid: number
  /** Runs a command on the box. Resolves when the whole response has arrived. */
  exec(command: string): Promise<void>
  /** Sends a request. The caller reads the response body. Rejects unless the status is 2xx. */
  send(
    method: string,
    path: string,
    body?: Buffer,
    headers?: Record<string, string | number>,
  ): Promise<IncomingMessage>
  /** Sends JSON, and resolves to that of the response. */
  // biome-ignore lint/suspicious/noExplicitAny: the response of any route.
  sendJson(method: string, path: string, body?: object): Promise<any>
  /** Deletes the box, stops the coordinator and removes its data. */
  close(): Promise<void>
}

/** Resolves when the coordinator listens. The cleanup stops it and removes its data. */
export async function spawnCoordinator(
  env: Record<string, string>,
  cleanup: AsyncDisposableStack,
  projectDir: string = PROJECT_DIR,
) {
  const dataDir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const child = spawn(join(projectDir, START_SCRIPT), {
    cwd: projectDir,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ...RAISED_LIMITS,
      BOXWOOD_DATA: dataDir,
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'warn',
      ...env,
    },
  })
  cleanup.defer(() => terminate(child))
  const url = await waitUntil('the coordinator listens', async () => {
    const text = await readFile(join(dataDir, 'coordinator.json'), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : String(JSON.parse(text).url)
  })
  return { child, dataDir, url }
}

/** @param env further environment variables of the coordinator @param projectDir a clone of Boxwood, to compare versions */
export async function startBoxwood(
  env: Record<string, string> = {},
  projectDir: string = PROJECT_DIR,
): Promise<Boxwood> {
  // Disposed when the start fails. After the start, close() disposes it.
  await using cleanup = new AsyncDisposableStack()
  const { child, dataDir, url } = await spawnCoordinator(env, cleanup, projectDir)
  const key = (await readFile(join(dataDir, 'owner.key'), 'utf8')).trim()
  const httpAgent = new Agent({ keepAlive: true, maxSockets: 100 })
  cleanup.defer(() => httpAgent.destroy())

  function send(
    method: string,
    path: string,
    body?: Buffer,
    headers: Record<string, string | number> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(`${url}${path}`, {
        method,
        agent: httpAgent,
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
      request.once('error', reject)
      request.once('response', (response) => {
        if (response.statusCode && response.statusCode < 300) return resolve(response)
        response.resume()
        reject(new Error(`${method} ${path} failed with status ${response.statusCode}`))
      })
      request.end(body)
    })
  }

  async function sendJson(method: string, path: string, body?: object) {
    const headers = body && { 'content-type': 'application/json' }
    const response = await send(method, path, body && Buffer.from(JSON.stringify(body)), headers)
    return JSON.parse(Buffer.concat(await response.toArray()).toString('utf8'))
  }

  async function listLiveBoxes(): Promise<Box[]> {
    return (await sendJson('GET', '/api/v1/boxes?live=1')).boxes
  }

  cleanup.defer(async () => {
    for (const { id } of await listLiveBoxes()) await sendJson('DELETE', `/api/v1/boxes/${id}`)
    await waitUntil('the boxes are deleted', async () => (await listLiveBoxes()).length === 0)
  })
  const box = await waitUntil('the first box is running', async () =>
    (await listLiveBoxes()).find(({ observedState }) => observedState === 'running'),
  )
  const agentPid = await waitUntil('the agent runs', () => findAgentPid(box.id))
  const cleanupOnClose = cleanup.move()
  return {
    url,
    key,
    dataDir,
    box,
    coordinatorPid: getPid(child),
    agentPid,
    async exec(command) {
      const body = Buffer.from(JSON.stringify({ command }))
      const response = await send('POST', `/v1/box/${box.hostname}/exec`, body, {
        'content-type': 'application/json',
      })
      for await (const _ of response) {
        // Read the whole body: the caller measures the time until its end.
      }
    },
    send,
    sendJson,
    close: () => cleanupOnClose.disposeAsync(),
  }
}
