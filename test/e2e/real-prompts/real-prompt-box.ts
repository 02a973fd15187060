// A real box on which a real coding agent can be installed, and a fake model server.

import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { PromptEvent, PromptStarted, ProviderName, Run } from '../../../shared/api/prompts.ts'
import { createCliHome } from '../../support/coding-agents/create-cli-home.ts'
import { CODING_AGENTS_DIR, installCodingAgents } from '../../support/coding-agents/install-coding-agents.ts'
import { startPackageRegistry } from '../../support/coding-agents/package-registry.ts'
import { listBoxPids } from '../../support/find-agent-process.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'
import { findPrivateDirectory } from '../../support/private-directory.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from '../coordinator-with-box.ts'

const agents = await installCodingAgents()
const NPM = (process.env.PATH ?? '')
  .split(':')
  .map((dir) => join(dir, 'npm'))
  .filter(existsSync)
  .map((path) => realpathSync(path))[0]

/** A shorter interval takes more CPU time than the coding agents. */
const POLL_MS = 250

/** Why the box cannot run the coding agents. */
export function findSkipReason(): string | false {
  if (agents.skip) return agents.skip
  if (NPM === undefined) return 'npm is not on the PATH'
  for (const path of [CODING_AGENTS_DIR, process.execPath, NPM]) {
    const dir = findPrivateDirectory(path)
    if (dir !== undefined) return `other users cannot read ${dir}`
  }
  return false
}

export type RealPromptBox = Awaited<ReturnType<typeof startRealPromptBox>>

/** The coding agent is not installed on the box, and the box has no credential for it. */
export async function startRealPromptBox(t: Test, provider: ProviderName) {
  const models = await startModelServer(t)
  const { home, env, model } = createCliHome(t, provider, models)
  const coordinator = await startCoordinatorWithBox(t, {
    env: {
      ...limitsEnv(HIGH_EDGE_LIMITS),
      BOXWOOD_LOCAL_ISOLATION: 'process',
      BOXWOOD_LOCAL_NETWORK: 'host',
    },
  })
  const { box, api, exec, boxRequest } = coordinator

  async function run(command: string): Promise<void> {
    const { exitCode, stderr } = await exec(command, { timeoutSeconds: 60 })
    if (exitCode !== 0) throw new Error(`${command}: ${stderr}`)
  }
  async function writeFile(path: string, content: string): Promise<void> {
    const { status } = await boxRequest('PUT', '/files', { path, content })
    if (status !== 200) throw new Error(`${path}: ${status}`)
  }
  /** The response to a prompt. */
  const post = (prompt: string, fields: object = {}) => {
    // pi runs all tools without asking, and refuses the field.
    const auto = provider === 'pi' ? {} : { auto: true }
    return boxRequest('POST', '/prompts', { provider, prompt, model, ...auto, ...fields })
  }
  const readEvents = async (id: string): Promise<PromptEvent[]> =>
    (await boxRequest('GET', `/prompts/${id}/events?limit=1000`)).json.events

  await run('mkdir -p .local/bin project')
  return {
    ...coordinator,
    ...{ models, model, post, readEvents },

    /** Links the installed program on the PATH of the box. */
    linkProgram: () => run(`ln -s ${join(agents.binDir, provider)} ${process.execPath} .local/bin`),
    /** Puts npm on the PATH of the box. */
    linkNpm: () =>
      run(
        `ln -s ${process.execPath} .local/bin && ln -s ${NPM} .local/bin/npm && ln -s ${CODING_AGENTS_DIR}/node_modules .`,
      ),
    /** @param url default: a registry on loopback that has the coding agents */
    async setRegistry(url?: string) {
      const registry = url ?? (await startPackageRegistry(t, join(CODING_AGENTS_DIR, 'node_modules'))).url
      await writeFile('.npmrc', `registry=${registry}\nfetch-retries=0\nloglevel=error\n`)
    },
    /** Gives the box the credential and the address of the fake model server. */
    async signIn() {
      const { HOME: _home, TMPDIR: _tmp, ...variables } = env
      await api('PATCH', `/boxes/${box.id}`, { env: variables })
      for (const path of ['.codex/config.toml', '.config/opencode/opencode.json', '.pi/agent/models.json']) {
        if (!existsSync(join(home, path))) continue
        await run(`mkdir -p ${dirname(path)}`)
        await writeFile(path, readFileSync(join(home, path), 'utf8'))
      }
    },

    /** Starts a run in the directory `project`. */
    async prompt(text: string, fields: object = {}): Promise<PromptStarted['run']> {
      const { status, json } = await post(text, { cwd: 'project', ...fields })
      if (status !== 202 || json.type !== 'prompt.started')
        throw new Error(`${status} ${JSON.stringify(json)}`)
      return json.run
    },
    waitForRun: (id: string): Promise<Run> =>
      waitUntil(
        `the run ${id} has ended`,
        async () => {
          const { status, json } = await boxRequest('GET', `/prompts/${id}`)
          if (status === 200 && json.run.status !== 'running') return json.run
          await delay(POLL_MS)
        },
        LONG_DEADLINE_MS,
      ),
    waitForFile: (path: string) =>
      waitUntil(
        `${path} exists`,
        async () => {
          if ((await exec(`test -e ${path}`)).exitCode === 0) return true
          await delay(POLL_MS)
        },
        LONG_DEADLINE_MS,
      ),
    readText: async (id: string) =>
      (await readEvents(id)).flatMap(({ type, text }) => (type === 'text' ? [text] : [])).join(''),
    listCommandLines: () => listBoxPids(box.id).map(readCommandLine),
    /** kill -9. Resolves when the next agent responds. */
    async killAgent(): Promise<void> {
      const pid = listBoxPids(box.id).find(isAgent)
      if (pid === undefined) throw new Error('the agent does not run')
      process.kill(pid, 'SIGKILL')
      await waitUntil('the next agent responds', async () => {
        const { status } = await boxRequest('GET', '/prompts')
        return status === 200 && !listBoxPids(box.id).includes(pid)
      })
    },
  }
}

const isAgent = (pid: number) => /agent\/main|agent\.(m?js)|\/agent-/.test(readCommandLine(pid))

/** '' when the process has exited. */
function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
