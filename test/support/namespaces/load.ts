// The load of chaos/replica-load.ts, with terminals of the real boxes and commands of the simulated agents.
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { startReplicaLoad } from '../chaos/replica-load.ts'
import { openResumingTerminal } from '../resuming-terminal.ts'
import type { NamespaceFleet } from './fleet.ts'

/** Of simulated agents. Each sends one command after the other. */
const CLIENTS = 4
const EXIT_CODE = 9

export type NamespaceLoad = Awaited<ReturnType<typeof startNamespaceLoad>>

export async function startNamespaceLoad(
  t: Test,
  fleet: NamespaceFleet,
  { random, seed }: { random: () => number; seed: number },
) {
  const load = startReplicaLoad(t, { fleet, boxes: fleet.boxes, random, seed })
  const stopped = new AbortController()
  let number = 0

  async function typeLines(hostname: string): Promise<void> {
    const path = `/v1/box/${hostname}`
    const session = `load-${seed}`
    const file = `terminal-${seed}`
    const command = `stty -echo; : >>${file}; while read -r line && [ "$line" != end ]; do echo "$line" >>${file}; done; exit ${EXIT_CODE}`
    await load.repeatJson('terminal', 'POST', `${path}/terminal/sessions`, { session, command })
    const terminal = openResumingTerminal(() => fleet.url + path, fleet.authHeaders(), session)
    t.teardown(() => terminal.close())
    let typed = ''
    while (!stopped.signal.aborted) {
      const line = `${++number}\n`
      typed += line
      terminal.type(line)
      await delay(100 + random() * 400)
    }
    terminal.type('end\n')
    const { exitCode } = await terminal.waitForExit()
    const { body } = await load.repeat('download', 'GET', `${path}/download?path=${file}`)
    t.equal(exitCode, EXIT_CODE, `${hostname}: the terminal has exited`)
    t.equal(body.toString(), typed, `${hostname}: the terminal has got each line once, in order`)
  }

  async function runSimulated(): Promise<void> {
    const { boxIds, authHeaders } = fleet.simulated
    const headers = { ...authHeaders(), 'content-type': 'application/json' }
    while (!stopped.signal.aborted && boxIds.length > 0) {
      const boxId = boxIds[Math.floor(random() * boxIds.length)]
      const startedAt = performance.now()
      const record = (result: string, message = '') =>
        load.attempts.push({
          ...{ kind: 'simulated exec', repeats: false },
          ...{ result, message, startedAt, endedAt: performance.now() },
        })
      const own = `number ${++number}`
      try {
        const body = JSON.stringify({ command: own })
        const response = await fleet.send('POST', `/v1/box/${boxId}/exec`, body, headers)
        const text = Buffer.concat(await response.toArray()).toString()
        const { stdout, error } = JSON.parse(text)
        record(response.statusCode === 200 ? 'ok' : error.code, error?.message)
        if (response.statusCode === 200 && stdout !== own) throw new Error(`the output of ${own}: ${stdout}`)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === undefined) throw error
        record(code)
      }
      await delay(20 + random() * 100)
    }
  }

  const workers = [
    ...fleet.boxes.map(({ hostname }) => typeLines(hostname)),
    ...Array.from({ length: CLIENTS }, runSimulated),
  ]
  const failed = Promise.race([load.failed, ...workers.map((worker) => worker.then(() => load.failed))])
  failed.catch(() => undefined)

  return {
    attempts: load.attempts,
    /** Runs a fault. Rejects when the fault or a part of the load has failed. */
    during: <T>(fault: Promise<T>): Promise<T> => Promise.race([fault, failed.then(() => fault)]),
    async stop(): Promise<void> {
      stopped.abort()
      await Promise.all([load.stop(), ...workers])
    },
    check: load.check,
  }
}
