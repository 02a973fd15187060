// The coordinator as a program of its own, which can be killed and started again on the same data.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { PROJECT, START_ARGS } from './project.ts'
import { tempFolder } from './temp-folder.ts'

const DEADLINE_MS = 40_000

/** Polls until `look` gives something other than undefined or false. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export type CoordinatorProcess = Awaited<ReturnType<typeof coordinatorProcess>>

/** Started and ready; it is stopped with its boxes when the test ends. */
export async function coordinatorProcess(t: Test, env: Record<string, string> = {}) {
  const data = tempFolder(t, 'process')
  let child: ChildProcess
  let url = ''

  async function start(): Promise<void> {
    rmSync(join(data, 'coordinator.json'), { force: true })
    child = spawn(process.execPath, [...START_ARGS], {
      cwd: PROJECT,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env,
        BOXWOOD_DATA: data,
        BOXWOOD_LISTEN: '127.0.0.1:0',
        BOXWOOD_LOG: 'error',
        BOXWOOD_EDGE_RATE: '10000',
        BOXWOOD_EDGE_CONCURRENCY: '1000',
        ...env,
      },
    })
    url = await eventually('the coordinator listens', async () => {
      if (child.exitCode !== null) throw new Error(`the coordinator exited with ${child.exitCode}`)
      try {
        return JSON.parse(readFileSync(join(data, 'coordinator.json'), 'utf8')).url as string
      } catch {
        return undefined
      }
    })
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  await start()
  const key = readFileSync(join(data, 'owner.key'), 'utf8').trim()
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) await start()
    const { boxes } = await json('GET', '/api/v1/boxes?live=1')
    for (const { id } of boxes) await json('DELETE', `/api/v1/boxes/${id}`)
    await eventually('every box is gone', async () => {
      const left = await json('GET', '/api/v1/boxes?live=1')
      return left.boxes.length === 0
    })
    await end('SIGTERM')
  })

  /** One request on a connection of its own; the answer's body is the caller's to read. */
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

  // biome-ignore lint/suspicious/noExplicitAny: what a client parses is whatever the server sent.
  async function json(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await send(
      method,
      path,
      body === undefined ? undefined : JSON.stringify(body),
      body === undefined ? {} : { 'content-type': 'application/json' },
    )
    const text = Buffer.concat(await answer.toArray()).toString('utf8')
    return text === '' ? { status: answer.statusCode } : { status: answer.statusCode, ...JSON.parse(text) }
  }

  async function state(id: string, wanted: string) {
    return eventually(`box ${id} is ${wanted}`, async () => {
      const { box } = await json('GET', `/api/v1/boxes/${id}`)
      return box?.observedState === wanted && box
    })
  }

  return {
    data,
    get url() {
      return url
    },
    get pid() {
      if (child.pid === undefined) throw new Error('the coordinator never started')
      return child.pid
    },
    start,
    end,
    headers: () => ({ authorization: `Bearer ${key}` }),
    send,
    json,
    state,
    async firstBox() {
      const { boxes } = await json('GET', '/api/v1/boxes?live=1')
      return state(boxes[0].id, 'running')
    },
    exec: (box: string, command: string, more: object = {}) =>
      json('POST', `/v1/box/${box}/exec`, { command, ...more }),
  }
}
