// A coordinator with its first box, started as its user would, and a client that keeps its connections.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Box } from '../../shared/api/boxes.ts'
import { findAgentPid } from '../../test/support/agent-process.ts'
import { PROJECT_DIR, START_ARGS } from '../../test/support/project.ts'
import { end, until } from './processes.ts'

export type Boxwood = {
  url: string
  key: string
  box: Box
  coordinatorPid: number
  agentPid: number
  exec(command: string): Promise<void>
  /** Any request; the answer's body is the caller's to read. Rejects on a status that is not 2xx. */
  send(
    method: string,
    path: string,
    body?: Buffer | Readable,
    headers?: Record<string, string | number>,
  ): Promise<IncomingMessage>
  close(): Promise<void>
}

/** Edge limits far above the spec's, since a measurement asks for more than 20 a second. */
const UNLIMITED = {
  BOXWOOD_EDGE_RATE: '1000000',
  BOXWOOD_EDGE_CONCURRENCY: '1000',
  BOXWOOD_EDGE_STREAMS: '1000',
}

export async function startBoxwood(env: Record<string, string> = {}): Promise<Boxwood> {
  const data = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  const child = spawn(process.execPath, [...START_ARGS], {
    cwd: PROJECT_DIR,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ...UNLIMITED,
      BOXWOOD_DATA: data,
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'warn',
      ...env,
    },
  })
  const read = (name: string) => readFile(join(data, name), 'utf8').catch(() => undefined)
  const url = await until('the coordinator', 20_000, async () => {
    const said = await read('coordinator.json')
    return said === undefined ? undefined : String(JSON.parse(said).url)
  })
  const key = (await readFile(join(data, 'owner.key'), 'utf8')).trim()
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })

  function send(
    method: string,
    path: string,
    body?: Buffer | Readable,
    headers: Record<string, string | number> = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(`${url}${path}`, {
        method,
        agent,
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
      request.once('error', reject)
      request.once('response', (response) => {
        if (response.statusCode && response.statusCode < 300) return resolve(response)
        response.resume()
        reject(new Error(`${method} ${path} answered ${response.statusCode}`))
      })
      if (body === undefined || Buffer.isBuffer(body)) request.end(body)
      else body.pipe(request)
    })
  }

  async function json(method: string, path: string, body?: unknown) {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const response = await send(
      method,
      path,
      bytes,
      bytes ? { 'content-type': 'application/json', 'content-length': bytes.length } : {},
    )
    return JSON.parse(Buffer.concat(await response.toArray()).toString('utf8'))
  }

  const box = await until('the first box', 30_000, async () => {
    const { boxes }: { boxes: Box[] } = await json('GET', '/api/v1/boxes')
    return boxes.find(({ observedState }) => observedState === 'running')
  })
  const command = JSON.stringify({ command: 'true' })
  const coordinatorPid = pidOf(child)
  return {
    url,
    key,
    box,
    coordinatorPid,
    agentPid: await until('the agent', 10_000, async () => findAgentPid(box.id)),
    async exec(text) {
      const bytes = text === 'true' ? command : JSON.stringify({ command: text })
      const response = await send('POST', `/v1/box/${box.hostname}/exec`, Buffer.from(bytes), {
        'content-type': 'application/json',
      })
      for await (const _ of response) {
        // Read to the end: the answer is part of what is timed.
      }
    },
    send,
    async close() {
      await json('DELETE', `/api/v1/boxes/${box.id}`)
      await until('the box to go', 30_000, async () => {
        const { boxes }: { boxes: Box[] } = await json('GET', '/api/v1/boxes?live=1')
        return boxes.length === 0 ? true : undefined
      })
      agent.destroy()
      await end(child)
      await rm(data, { recursive: true, force: true })
    },
  }
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('the coordinator did not start')
  return pid
}
