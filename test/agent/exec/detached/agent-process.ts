// Starts the agent as a process of its own and sends requests over its unix socket, for tests that kill the agent.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'

const MAIN = join(import.meta.dirname, '../../../../agent/main.ts')

export type AgentProcess = {
  child: ChildProcess
  /** Rejects when the agent exits before the response. */
  request(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }>
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>
}

/** Resolves when the agent accepts requests. Rejects when the agent exits first. */
export async function startAgentProcess(
  t: Test,
  home: string,
  env: Record<string, string> = {},
): Promise<AgentProcess> {
  const stateDir = join(home, '.state')
  const socketPath = join(home, 'app.sock')
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env.PATH ?? '',
      // createHome() kills all processes with this HOME.
      HOME: home,
      BOXWOOD_URL: 'http://127.0.0.1:1',
      BOXWOOD_BOX: randomUUID(),
      BOXWOOD_STATE: stateDir,
      BOXWOOD_HOME: home,
      BOXWOOD_SOCKET: socketPath,
      BOXWOOD_LOG: 'info',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const exit = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await exit
  }
  t.teardown(kill)
  await waitUntil('the agent runs', () => stderr.includes('agent started') || child.exitCode !== null)
  if (child.exitCode !== null) throw new Error(`the agent exited with ${child.exitCode}: ${stderr}`)
  const session = connect('http://box', { createConnection: () => createConnection(socketPath) })
  session.on('error', () => session.destroy())
  t.teardown(() => session.destroy())
  return {
    child,
    async request(method, path, body) {
      const stream = session.request({
        ':method': method,
        ':path': path,
        ...(body && { 'content-type': 'application/json' }),
      })
      stream.end(body && JSON.stringify(body))
      const closed = once(stream, 'close').then(() =>
        Promise.reject(new Error('the stream closed before the response')),
      )
      const [headers] = await Promise.race([once(stream, 'response'), closed])
      closed.catch(() => undefined)
      return { status: headers[':status'], body: JSON.parse(await text(stream)) }
    },
    kill,
  }
}
