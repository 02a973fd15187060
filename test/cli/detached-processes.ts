// Starts detached commands on the real box fig, without the box command.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../support/wait-until.ts'
import type { CliCoordinator } from './coordinator.ts'

export function createProcessStarter({ edge, getHome }: CliCoordinator) {
  let files = 0

  /** Resolves with the id of the process. */
  async function start(command: string, fields: object = {}): Promise<string> {
    const { status, json, text } = await edge('fig', 'POST', '/exec', { command, detached: true, ...fields })
    if (status !== 202 && status !== 200) throw new Error(text)
    return json.processId
  }

  const readStatus = async (id: string) => (await edge('fig', 'GET', `/exec/${id}`)).json

  return {
    start,
    readStatus,
    /** Resolves with the id when the process has exited. */
    async run(command: string, fields: object = {}): Promise<string> {
      const id = await start(command, fields)
      await waitUntil('the process has exited', async () => !(await readStatus(id)).running)
      return id
    },
    /** Resolves when the output of the process ends with these texts. */
    waitForOutput: (id: string, stdout: string, stderr = '') =>
      waitUntil('the output of the process', async () => {
        const status = await readStatus(id)
        return status.stdout.endsWith(stdout) && status.stderr.endsWith(stderr)
      }),
    /** Creates a file in the home directory. Returns its name. */
    writeFile(bytes: Buffer): string {
      const name = `file-${++files}`
      writeFileSync(join(getHome('fig'), name), bytes)
      return name
    },
  }
}

/** The prefix of the request of the stream of a process. */
export const streamOf = (id: string): string => `GET /v1/box/fig/exec/${id}/stream`
