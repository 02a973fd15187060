// Reports what the machine of the box is (spec §4.3), once after each start of the agent.
import { execFile } from 'node:child_process'
import { extname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import { type Machine, machineSchema } from '../../shared/api/machine.ts'
import { createNodeEnvironment } from '../own-libraries.ts'
import type { Spool } from '../reports/spool.ts'

/** The limits of the box, or the size of its machine; null: unknown. */
export type MachineSize = Pick<Machine, 'cpuCount' | 'memoryBytes' | 'diskBytes'>

/** The first commands of a box come first. */
const DELAY_MS = 3000
const TIMEOUT_MS = 60_000

/** Has the same extension as this file: the sources are TypeScript, the npm package and the bundle are JavaScript. */
const PROGRAM = fileURLToPath(new URL(`./machine-info${extname(import.meta.url)}`, import.meta.url))
const textSchema = machineSchema.pick({ os: true, kernel: true, arch: true, cpuModel: true })

export type MachineReport = { close(): Promise<void> }

export function startMachineReport(spool: Spool, log: Logger, getSize: () => MachineSize): MachineReport {
  const closing = new AbortController()
  const { signal } = closing

  async function report(): Promise<void> {
    await sleep(DELAY_MS, undefined, { signal, ref: false })
    const options = { signal, timeout: TIMEOUT_MS, env: createNodeEnvironment() }
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], options)
    const text = textSchema.parse(JSON.parse(stdout))
    await spool.append({ type: 'machine', machine: { ...text, ...getSize() } })
  }
  const finished = report().catch((err: unknown) => {
    if (!signal.aborted) log.warn({ err }, 'failed to report what the machine is; the next agent tries again')
  })

  return {
    async close() {
      closing.abort()
      await finished
    },
  }
}
