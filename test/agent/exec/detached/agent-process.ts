// Starts the agent as a process of its own and sends requests over its tunnel, for tests that kill the agent.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { JsonMethod } from '../../../../agent/requests/json-routes.ts'
import { startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, LONG_DEADLINE_MS } from '../../../support/wait-until.ts'

const MAIN = join(import.meta.dirname, '../../../../agent/main.ts')

export type AgentProcess = {
  child: ChildProcess
  /** Rejects when the agent exits before the response. */
  request(method: JsonMethod, path: string, body?: object): Promise<{ status: number; body: unknown }>
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
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const { boxId, token } = coordinator.addBox()
  mkdirSync(stateDir, { recursive: true })
  writeFileSync(join(stateDir, 'token'), token)
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env.PATH ?? '',
      // createHome() kills all processes with this HOME.
      HOME: home,
      BOXWOOD_URL: coordinator.url,
      BOXWOOD_BOX: boxId,
      BOXWOOD_STATE: stateDir,
      BOXWOOD_HOME: home,
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
  const exited = exit.then(() =>
    Promise.reject(new Error(`the agent exited with ${child.exitCode}: ${stderr}`)),
  )
  exited.catch(() => undefined)
  const tunnel = await Promise.race([coordinator.tunnels.wait(boxId, DEADLINE_MS), exited])
  return {
    child,
    async request(method, path, body) {
      const call = { method, path, ...(body && { body: JSON.stringify(body) }), timeoutMs: LONG_DEADLINE_MS }
      const response = await tunnel.call(call)
      return { status: response.status, body: JSON.parse(response.body.toString()) }
    },
    kill,
  }
}
