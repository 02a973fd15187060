// Starts a coordinator in this process for tests of the box command, behind a proxy that records its requests.
import { execFileSync } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Box, Vitals } from '../../shared/api/boxes.ts'
import type { Command } from '../../shared/api/commands.ts'
import { type CoordinatorOptions, startTestCoordinator } from '../support/coordinator.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'

export type CliCoordinator = Awaited<ReturnType<typeof startCliCoordinator>>

/** The command sends more requests than one user does. */
const HIGH_EDGE_LIMITS = { edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000 }

/** What the agent of a box reports in a heartbeat. */
export const createVitals = (fields: Partial<Vitals> = {}): Vitals => ({
  cpu_pct: 1.4,
  mem_pct: 20,
  disk_pct: 3,
  idle_for_sec: 150,
  listeners_count: 1,
  agent_version: '1.2.3',
  ...fields,
})

/**
 * Its boxes have the names `boxes`, and run. With real machines, they are processes of this machine that share its files.
 * @param options.machines default: in memory, whose agents reject every request
 */
export async function startCliCoordinator(t: Test, boxes: string[] = [], options: CoordinatorOptions = {}) {
  const proxy = await startFaultProxy(t)
  const { env, ...overrides } = options
  const coordinator = await startTestCoordinator(t, {
    env: {
      BOXWOOD_PUBLIC_URL: proxy.url,
      BOXWOOD_LOCAL_ISOLATION: 'process',
      ...limitsEnv(HIGH_EDGE_LIMITS),
      ...env,
    },
    ...overrides,
  })
  proxy.setTarget(coordinator.url)
  const { api, infra, waitForState } = coordinator

  const ids = new Map<string, string>()

  /** Resolves when the box runs. */
  async function addBox(name: string, fields: object = {}): Promise<Box> {
    const { status, json, text } = await api('POST', '/boxes', { name, ...fields })
    if (status !== 202) throw new Error(text)
    ids.set(name, json.box.id)
    return waitForState(json.box.id, 'running')
  }

  const { json } = await api('GET', '/boxes')
  const [first] = json.boxes
  await waitForState(first.id, 'running')
  const [name, ...others] = boxes
  if (name === undefined) {
    await api('DELETE', `/boxes/${first.id}`)
    await waitForState(first.id, 'terminated')
  } else {
    ids.set(name, first.id)
    await api('PATCH', `/boxes/${first.id}`, { name })
  }
  for (const other of others) await addBox(other)

  // Tests compare the files in the home directories of real boxes.
  if (options.machines === 'local')
    for (const id of ids.values()) rmSync(join(coordinator.dataDir, 'boxes', id, 'home/.profile'))

  const { workspaceId = '', userId = null } = coordinator.instance.owner ?? {}
  return {
    ...coordinator,
    ...proxy,
    /** Waits until the newest record of the command history of the box meets the condition. */
    waitForCommand: (name: string, condition: (record: Command) => boolean): Promise<Command> =>
      waitUntil('the newest command', async () => {
        const { json } = await api('GET', `/boxes/${ids.get(name)}/commands?limit=1`)
        const [record] = json.commands
        return record !== undefined && condition(record) && record
      }),
    owner: { workspaceId, userId },
    addBox,
    /** The home directory of a real box, by the name at its creation. */
    getHome: (name: string): string => join(coordinator.dataDir, 'boxes', ids.get(name) ?? '', 'home'),
    /** Gives the files that the test has created in the home directory to the user of the box. */
    giveFiles(name: string): void {
      const home = join(coordinator.dataDir, 'boxes', ids.get(name) ?? '', 'home')
      const { uid, gid } = statSync(home)
      execFileSync('chown', ['-Rh', `${uid}:${gid}`, home])
    },
    /** Changes the fields of the box, and of the response, in the next response of GET /boxes/{id}. */
    changeDetailNext(fields: Partial<Box>, detail: object = {}): void {
      proxy.changeNext('GET /api/v1/boxes/', (body) => {
        const box = { ...body.box, ...fields }
        const state = { ...body.state, desired: box.desiredState, observed: box.observedState }
        return { ...body, state, ...detail, box }
      })
    },
    /** The next calls of the provider wait until the command has seen the state before their effect. */
    holdUntilPolled(...methods: ('create' | 'start' | 'stop' | 'destroy' | 'takeOver' | 'freeze')[]): void {
      for (const method of methods)
        infra.before[method] = (boxId) => {
          delete infra.before[method]
          return proxy.waitForResponse(`GET /api/v1/boxes/${boxId}`)
        }
    },
    /** The live box of this name, as the API shows it. */
    async findBox(name: string): Promise<Box> {
      const { json } = await api('GET', '/boxes?live=1')
      const box = json.boxes.find(({ hostname }: Box) => hostname === name)
      if (box === undefined) throw new Error(`There is no box ${name}.`)
      return box
    },
  }
}
