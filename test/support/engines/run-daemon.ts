// A daemon in a sandbox that a test kills and starts again.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../wait-until.ts'
import { answers } from './request-engine.ts'
import type { Sandbox, SandboxProcess } from './sandbox.ts'

/** The file to which daemons write, in the directory of the sandbox. */
const LOG = 'engine.log'

/** Starts the daemon, and resolves when it answers on its socket. */
export async function runDaemon(
  sandbox: Sandbox,
  command: readonly string[],
  options: { env?: NodeJS.ProcessEnv; socket: string },
) {
  let daemon: SandboxProcess | undefined
  async function start() {
    const started = sandbox.spawn(command, { env: options.env ?? {}, log: LOG })
    daemon = started
    await waitUntil('the engine answers', () => {
      if (started.hasExited())
        throw new Error(`the engine has exited: ${readFileSync(join(sandbox.dir, LOG), 'utf8').slice(-2000)}`)
      return answers(options.socket)
    })
  }
  await start()
  return { start, kill: async () => daemon?.kill('SIGKILL') }
}
