// Starts loads of known size on a box over HTTP, and reads what they have used.
import { readFileSync } from 'node:fs'
import type { LoadOptions, LoadState } from '../fixtures/box-load.ts'
import { sleepUntil } from './measurements.ts'
import { waitUntil } from './wait-until.ts'

export type { LoadOptions, LoadState }

/** Runs a command on the box and returns the response body of POST /exec. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
export type Exec = (command: string, options?: object) => Promise<any>

const PROGRAM = readFileSync(new URL('../fixtures/box-load.ts', import.meta.url), 'utf8')

export type BoxLoad = {
  /** Of POST /exec. */
  processId: string
  /** Before the command was sent to the box. */
  requestedAt: number
  state: LoadState
  /** The mean share of one CPU that the load used in this time, which has just passed. */
  readCpus(fromMs: number, toMs: number): Promise<number>
  /** Of this moment. */
  readAnonymousBytes(): Promise<number>
}

/** Resolves when the memory, the file and the traffic are complete. The load continues to use the CPU. */
export async function startBoxLoad(exec: Exec, options: LoadOptions): Promise<BoxLoad> {
  const { name } = options
  const env = { PROGRAM, OPTIONS: JSON.stringify(options) }
  // The Node of the agent, which is the parent process of a synchronous command: the box may have no other.
  const { stdout } = await exec(`printf %s "$PROGRAM" >${name}.ts && readlink /proc/$PPID/exe`, { env })
  const node = stdout.trim()
  const requestedAt = Date.now()
  const { processId } = await exec(`exec '${node}' ${name}.ts "$OPTIONS"`, { env, detached: true })
  const readState = async (): Promise<LoadState | undefined> => {
    const { stdout } = await exec(`cat ${name}.json`)
    return stdout === '' ? undefined : JSON.parse(stdout)
  }
  const state = await waitUntil(`the load ${name} is complete`, readState)
  return {
    processId,
    requestedAt,
    state,
    readAnonymousBytes: async () => (await readState())?.anonymousBytes ?? Number.NaN,
    async readCpus(fromMs, toMs) {
      // The load writes its state once a second.
      await sleepUntil(toMs + 1000)
      const history = await waitUntil(`the load ${name} has used the CPU until ${toMs}`, async () => {
        const { cpuSeconds = [] } = (await readState()) ?? {}
        return (cpuSeconds.at(-1)?.[0] ?? 0) >= toMs && cpuSeconds
      })
      const at = (ms: number) => history.find(([time]) => time >= ms) ?? [ms, Number.NaN]
      const [[from, before], [to, after]] = [at(fromMs), at(toMs)]
      return ((after - before) * 1000) / (to - from)
    },
  }
}
