// Runs the coordinator as a child process that can be killed and restarted on the same data.

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { databaseEnv } from './database-env.ts'
import { limitsEnv } from './limits-env.ts'
import { getOpenApiCheck } from './openapi-check.ts'
import { PROJECT_DIR, START_SCRIPT } from './project.ts'
import { createTempDir } from './temp-dir.ts'
import { DEADLINE_MS, waitUntil } from './wait-until.ts'

export type CoordinatorProcess = Awaited<ReturnType<typeof startCoordinatorProcess>>

export type ProcessOptions = {
  /** The descriptor of a listening socket, which the coordinator gets as from systemd. */
  socket?: number
  /** A descriptor that the coordinator inherits by chance. */
  other?: number
  /** The descriptor of a file for its log. Default: that of this process. */
  log?: number
  /** A command that executes its arguments, such as `unshare`. */
  prefix?: readonly string[]
  /** How long a start may take. Default: DEADLINE_MS. */
  startMs?: number
  /** Called at each start, with the pid of the coordinator. */
  onSpawn?(pid: number): void
}

/**
 * Resolves when the coordinator is ready. Deletes the boxes and stops the coordinator after the test.
 * @param env BOXWOOD_DATA: an existing data directory, which remains. Default: a temporary directory
 * @param projectDir a copy of the project from which the coordinator runs
 * @param options see ProcessOptions
 */
export async function startCoordinatorProcess(
  t: Test,
  env: Record<string, string> = {},
  projectDir = PROJECT_DIR,
  options: ProcessOptions = {},
) {
  const dataDir = env.BOXWOOD_DATA ?? createTempDir(t, 'process')
  let child: ChildProcess
  let url = ''

  let currentProjectDir = projectDir
  async function start(dir = currentProjectDir): Promise<void> {
    currentProjectDir = dir
    rmSync(join(dataDir, 'coordinator.json'), { force: true })
    const script = join(dir, START_SCRIPT)
    const [file = script, ...args] = [
      ...(options.prefix ?? []),
      ...(options.socket === undefined
        ? [script]
        : ['/bin/sh', '-c', 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0"', script]),
    ]
    const stdio: StdioOptions = ['ignore', 'ignore', options.log ?? 'inherit', options.socket ?? 'ignore']
    // Node sets close-on-exec on lower numbers.
    if (options.other !== undefined) stdio.push(...Array(36).fill('ignore'), options.other)
    child = spawn(file, args, {
      cwd: dir,
      stdio,
      env: {
        ...limitsEnv({ edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000 }),
        BOXWOOD_WARM: '0',
        ...process.env,
        BOXWOOD_DATA: dataDir,
        BOXWOOD_LISTEN: '127.0.0.1:0',
        BOXWOOD_LOG: 'error',
        ...databaseEnv(dataDir),
        ...env,
      },
    })
    if (child.pid !== undefined) options.onSpawn?.(child.pid)
    const readUrl = async () => {
      const status = child.exitCode ?? child.signalCode
      if (status !== null) throw new Error(`the coordinator exited with ${status}`)
      try {
        return JSON.parse(readFileSync(join(dataDir, 'coordinator.json'), 'utf8')).url as string
      } catch {
        return undefined
      }
    }
    const { startMs = DEADLINE_MS } = options
    url = await waitUntil('the coordinator listens', readUrl, startMs)
  }

  const hasExited = () => child.exitCode !== null || child.signalCode !== null

  /** Starts it, unless it runs. */
  async function ensureRunning(): Promise<void> {
    if (hasExited()) await start()
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    if (hasExited()) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  await start()
  const key = readFileSync(join(dataDir, 'owner.key'), 'utf8').trim()
  const checkResponse = await getOpenApiCheck(url)
  t.teardown(async () => {
    await ensureRunning()
    const { boxes } = await sendJson('GET', '/api/v1/boxes?live=1')
    for (const { id } of boxes) await sendJson('DELETE', `/api/v1/boxes/${id}`)
    await waitUntil('every box is deleted', async () => {
      const { boxes } = await sendJson('GET', '/api/v1/boxes?live=1')
      return boxes.length === 0
    })
    await kill('SIGTERM')
  })

  /** Sends a request on a new connection. The caller reads the response body. */
  function send(
    method: string,
    path: string,
    body?: string | Buffer | Readable,
    headers: Record<string, string | number> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(url + path, {
        method,
        agent: false,
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
      request.once('error', reject)
      request.once('response', resolve)
      if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) request.end(body)
      else body.on('error', (error) => request.destroy(error)).pipe(request)
    })
  }

  /** Throws when the OpenAPI document does not describe the response. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
  async function sendJson(method: string, path: string, body?: unknown): Promise<any> {
    const response = await send(
      method,
      path,
      body === undefined ? undefined : JSON.stringify(body),
      body === undefined ? {} : { 'content-type': 'application/json' },
    )
    const text = Buffer.concat(await response.toArray()).toString('utf8')
    const headers = new Headers(
      Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
    )
    checkResponse(method, path, { status: response.statusCode ?? 0, headers, text })
    return text === ''
      ? { status: response.statusCode }
      : { status: response.statusCode, ...JSON.parse(text) }
  }

  async function waitForState(id: string, state: string) {
    return waitUntil(`box ${id} is ${state}`, async () => {
      const { box } = await sendJson('GET', `/api/v1/boxes/${id}`)
      return box?.observedState === state && box
    })
  }

  return {
    dataDir,
    get url() {
      return url
    },
    get pid() {
      if (child.pid === undefined) throw new Error('the coordinator process did not start')
      return child.pid
    },
    start,
    ensureRunning,
    kill,
    authHeaders: () => ({ authorization: `Bearer ${key}` }),
    send,
    sendJson,
    waitForState,
    async waitForFirstBox() {
      const { boxes } = await sendJson('GET', '/api/v1/boxes?live=1')
      return waitForState(boxes[0].id, 'running')
    },
    exec: (box: string, command: string, options: object = {}) =>
      sendJson('POST', `/v1/box/${box}/exec`, { command, ...options }),
  }
}
