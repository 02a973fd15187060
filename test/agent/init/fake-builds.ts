// A prefix with builds whose agents are small programs, and the supervisor that runs them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SCRIPTS_DIR = join(PROJECT_DIR, 'agent/init')

/** Each agent appends its build and pid to `starts`. */
const AGENTS = {
  /** Writes connected-build, like an agent that the coordinator has accepted. */
  connects: 'connect(); setInterval(() => {}, 1000)',
  exits: 'process.exit(3)',
  'never connects': 'setInterval(() => {}, 1000)',
  'ignores HUP': "process.on('SIGHUP', () => {}); setInterval(() => {}, 1000)",
  /** Writes its pid to `ready`, and the signal that stops it to `signal`. */
  'records signals': `for (const name of ['SIGTERM', 'SIGHUP'])
    process.on(name, () => { fs.writeFileSync(state + '/signal', name); process.exit() })
  fs.writeFileSync(state + '/ready', String(process.pid))
  setInterval(() => {}, 1000)`,
  'connects when the file online exists':
    "setInterval(() => { if (fs.existsSync(state + '/online')) connect() }, 20)",
  'connects and exits': 'connect(); process.exit(4)',
} as const
export type Behaviour = keyof typeof AGENTS

const PRELUDE = `
import fs from 'node:fs'
const state = process.env.BOXWOOD_STATE
const build = fs.readFileSync(import.meta.dirname + '/build-id', 'utf8')
const connect = () => {
  fs.writeFileSync(state + '/connected-build.new', build + ' ' + process.pid + '\\n')
  fs.renameSync(state + '/connected-build.new', state + '/connected-build')
}
fs.appendFileSync(state + '/starts', build + ' ' + process.pid + '\\n')
`

export function createPrefix(t: Test) {
  const prefix = createTempDir(t, 'prefix')
  const state = join(prefix, 'state')
  mkdirSync(join(prefix, 'versions'))
  mkdirSync(state)
  writeFileSync(join(state, 'starts'), '')
  writeFileSync(join(prefix, 'agent.env'), `BOXWOOD_STATE='${state}'\nBOXWOOD_HOME='${prefix}'\n`)
  const readState = (name: string): string | null => {
    try {
      return readFileSync(join(state, name), 'utf8')
    } catch {
      return null
    }
  }
  const listStarts = () =>
    (readState('starts') ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [build = '', pid = ''] = line.split(' ')
        return { build, pid: Number(pid) }
      })

  return {
    prefix,
    state,
    readState,
    listStarts,
    /** The builds in the order of their starts. */
    listBuilds: () => listStarts().map(({ build }) => build),
    addBuild(build: string, behaviour: Behaviour): void {
      const dir = join(prefix, 'versions', build)
      mkdirSync(dir)
      writeFileSync(join(dir, 'agent.mjs'), PRELUDE + AGENTS[behaviour])
      writeFileSync(join(dir, 'build-id'), build)
      writeFileSync(join(dir, 'node-flags'), '--max-semi-space-size=1 --single-threaded-gc\n')
      symlinkSync(process.execPath, join(dir, 'node'))
    },
    link: (name: 'current' | 'previous', build: string) =>
      symlinkSync(`versions/${build}`, join(prefix, name)),
    readLink(name: 'current' | 'previous'): string | null {
      try {
        return readlinkSync(join(prefix, name))
      } catch {
        return null
      }
    },
  }
}

export type Prefix = ReturnType<typeof createPrefix>

/** Starts the script with a trial of `trialSeconds`. TERM stops it after the test. */
export function runScript(
  t: Test,
  script: 'supervise.sh' | 'init.sh',
  args: string[],
  { trialSeconds = 60, env = {} }: { trialSeconds?: number; env?: Record<string, string> } = {},
): ChildProcess {
  const child = spawn('sh', [join(SCRIPTS_DIR, script), ...args], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH, HOME: '/', ...env, BOXWOOD_TRIAL_SECONDS: String(trialSeconds) },
  })
  t.teardown(() => stop(child))
  return child
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

export const waitForStart = (prefix: Prefix, build: string, count = 1) =>
  waitUntil(
    `build ${build} has been started ${count} times`,
    () => prefix.listBuilds().filter((started) => started === build).length >= count,
  )

export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
