// Starts a real coding agent with the command line of its provider, and maps its output to events.
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'
import {
  INITIAL_MAPPER_STATE,
  type JsonObject,
  type MappedEvent,
  type MapperState,
  type Provider,
} from '../../../../agent/prompts/providers/types.ts'
import type { ReasoningEffort } from '../../../../shared/api/prompts.ts'
import type { CliHome } from '../../../support/coding-agents/create-cli-home.ts'
import type { CodingAgents } from '../../../support/coding-agents/install-coding-agents.ts'
import { waitUntil } from '../../../support/wait-until.ts'

export type CliOptions = {
  agents: CodingAgents
  cli: CliHome
  prompt: string
  /** Default: that of the home directory. */
  model?: string
  effort?: ReasoningEffort
  /** Default: true. */
  auto?: boolean
  sessionId?: string | null
  env?: Record<string, string>
}

export type CliResult = {
  events: MappedEvent[]
  state: MapperState
  exitCode: number | null
  signal: NodeJS.Signals | null
  stderr: string
}

export type RunningCli = {
  pid: number
  /** Grows while the CLI runs. */
  events: readonly MappedEvent[]
  waitForEvent(type: MappedEvent['type']): Promise<MappedEvent>
  /** Sends the provider's signal to the process group. */
  interrupt(): void
  result: Promise<CliResult>
}

/** A CLI that is still running at the end of the test is killed. */
export function startCli(
  t: { teardown(callback: () => unknown): void },
  provider: Provider,
  options: CliOptions,
): RunningCli {
  const { agents, cli, prompt, sessionId = null, auto = true, effort = null } = options
  const model = selectModel(options.model ?? cli.model)
  const tmpDir = join(cli.home, 'tmp-of-run')
  mkdirSync(tmpDir, { recursive: true })
  const env = { ...cli.env, PATH: agents.path, LANG: 'C.UTF-8', ...options.env }
  const isRoot = process.getuid?.() === 0
  const command = provider.buildCommand({ model, effort, auto, sessionId, env, tmpDir, isRoot })
  const child = spawn(join(agents.binDir, provider.program), command.args, {
    cwd: cli.cwd,
    env: { ...env, ...command.env },
    // The process group is signalled.
    detached: true,
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${provider.program} did not start`)
  let running = true
  t.teardown(() => {
    if (running) process.kill(-pid, 'SIGKILL')
  })

  const events: MappedEvent[] = []
  let state = INITIAL_MAPPER_STATE
  let stderr = ''
  let rest = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const mapped = provider.mapLine(JSON.parse(line) as JsonObject, state)
      events.push(...mapped.events)
      state = mapped.state
    }
  })
  // A CLI that fails early does not read its input.
  child.stdin.on('error', () => {})
  child.stdin.end(provider.encodePrompt(prompt))
  const result = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exitCode, signal) => {
      running = false
      rmSync(tmpDir, { recursive: true, force: true })
      resolve({ events, state, exitCode, signal, stderr })
    })
  })
  return {
    pid,
    events,
    waitForEvent: (type) =>
      waitUntil(`${provider.name} reports ${type}`, () => events.find((event) => event.type === type)),
    interrupt: () => void process.kill(-pid, `SIG${provider.interruptSignal}`),
    result,
  }
}

export function runCli(
  t: { teardown(callback: () => unknown): void },
  provider: Provider,
  options: CliOptions,
): Promise<CliResult> {
  return startCli(t, provider, options).result
}
