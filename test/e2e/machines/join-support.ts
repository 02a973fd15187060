// A coordinator that fresh machines join, by the line that it prints.

import type { Test } from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { requestToken } from '../../support/enroll.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { startRewritingProxy } from '../../support/rewriting-proxy.ts'
import {
  HOST_ADDRESS,
  type Machine,
  type RunOptions,
  type User,
} from '../../support/root-filesystems/machine.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'

export type JoinCoordinator = Awaited<ReturnType<typeof startJoinCoordinator>>

/** The machines reach the coordinator by a NAT, from the same address. */
const ADDRESS_LIMIT_FACTOR = 1000

/** Starts a coordinator without boxes. */
export async function startJoinCoordinator(t: Test) {
  const target = { port: 0 }
  const proxy = await startRewritingProxy(() => target.port)
  const publicUrl = `http://${HOST_ADDRESS}:${proxy.port}`
  const coordinator = await startTestCoordinator(t, {
    machines: 'joined',
    env: {
      ...limitsEnv({ edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000 }),
      BOXWOOD_PUBLIC_URL: publicUrl,
    },
    addressLimitFactor: ADDRESS_LIMIT_FACTOR,
  })
  target.port = Number(new URL(coordinator.url).port)
  t.teardown(() => proxy.close())
  const { json } = await coordinator.api('GET', '/boxes')
  for (const { id } of json.boxes) await coordinator.api('DELETE', `/boxes/${id}`)

  async function findBox(name: string) {
    const { json } = await coordinator.api('GET', '/boxes?live=1')
    return json.boxes.find(({ hostname }: { hostname: string }) => hostname === name)
  }

  return {
    ...coordinator,
    publicUrl,
    proxy,
    findBox,
    /** The names of the enrollments that can still be used. */
    async listOpenNames(): Promise<string[]> {
      const { json } = await coordinator.api('GET', '/machines')
      return json.enrollments.map(({ name }: { name: string }) => name)
    },
    /** The line that `box machine add NAME` prints. */
    async createCommand(name: string): Promise<string> {
      const { status, json, text } = await requestToken(coordinator, { name })
      if (status !== 201) throw new Error(`POST /machines: ${text}`)
      return json.command
    },
    /** Runs a command on the box, and returns its output. Waits for the connection of the agent. */
    exec: (name: string, command: string): Promise<string> =>
      waitUntil(
        `box ${name} has run ${command}`,
        async () => {
          const { status, json } = await coordinator.edge(name, 'POST', '/exec', { command })
          return status === 200 && json.exitCode === 0 ? `${json.stdout}` : undefined
        },
        // The machine may reboot.
        LONG_DEADLINE_MS,
      ),
  }
}

/** A line with curl for a machine that has only wget. */
export const withWget = (line: string): string => line.replace('curl -fsSL', 'wget -qO-')

/** Runs the line on the machine, and returns what it prints. curl fails without an effect on the exit status. */
export async function runLine(machine: Machine, line: string, options: RunOptions = {}): Promise<string> {
  const { stdout, stderr } = await machine.run(line, options)
  return stdout + stderr
}

/** The line that uninstalls the agent. */
export const toUninstallLine = (line: string): string => line.replace(/--token \S+/, '--uninstall')

/** The directory of the installation. */
export const PREFIXES: Record<User, string> = {
  root: '/opt/boxwood',
  tester: '/home/tester/.local/share/boxwood',
}

/** Starts the agent on a machine whose init does not, as the installer prints it. */
export const startAgent = (machine: Machine, user: User): Promise<string> =>
  runLine(machine, `${PREFIXES[user]}/current/node ${PREFIXES[user]}/current/setup.mjs start`, { user })
