// A daemon in a sandbox that a test kills and starts again.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../wait-until.ts'
import { answers } from './request-engine.ts'
import type { Sandbox, SandboxProcess } from './sandbox.ts'

/** The file to which daemons write, in the directory of the sandbox. */
const LOG = 'engine.log'
const MAX_STARTS = 5

/** Starts the daemon, and resolves when it answers on its socket. */
export async function runDaemon(
  sandbox: Sandbox,
  command: readonly string[],
  options: { env?: NodeJS.ProcessEnv; socket: string; beforeStart?: () => void },
) {
  let daemon: SandboxProcess | undefined
  /** As a service manager does, starts the daemon again when it exits. */
  async function start() {
    let starts = 0
    await waitUntil('the engine answers', async () => {
      if (daemon === undefined || daemon.hasExited()) {
        if (starts === MAX_STARTS) {
          const log = readFileSync(join(sandbox.dir, LOG), 'utf8')
          throw new Error(`the engine has exited: ${log.slice(-2000)}`)
        }
        starts += 1
        options.beforeStart?.()
        daemon = sandbox.spawn(command, { env: options.env ?? {}, log: LOG })
      }
      return answers(options.socket)
    })
  }
  await start()
  return { start, kill: async () => daemon?.kill('SIGKILL') }
}
