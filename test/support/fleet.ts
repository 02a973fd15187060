// Starts a coordinator in a process of its own, with boxes that have no machines: the caller connects their agents.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type FleetBox = { boxId: string; token: string }
/** The coordinator's URL, the owner's API key, the agent token of each box, and the directory of the coordinator's data. */
export type Fleet = { url: string; key: string; boxes: FleetBox[]; dataDir: string }

export type FleetOptions = {
  /** Node's options of the process, such as the limit of its heap. */
  execArgv?: string[]
  /** The coordinator's settings, such as BOXWOOD_LIMITS. */
  settings?: Record<string, string>
}

export async function startFleet(boxCount: number, { execArgv = [], settings = {} }: FleetOptions = {}) {
  const script = fileURLToPath(new URL('fleet-coordinator.ts', import.meta.url))
  const options = JSON.stringify({ settings })
  const coordinator = fork(script, [String(boxCount), options], { execArgv })
  /** Resolves when the coordinator has exited. */
  async function stop(): Promise<void> {
    if (coordinator.exitCode !== null || coordinator.signalCode !== null) return
    const exited = once(coordinator, 'exit')
    coordinator.kill('SIGTERM')
    await exited
  }
  try {
    return { fleet: await receiveMessage<Fleet>(coordinator), coordinator, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Resolves with the next message of the child process. Rejects when the child exits before it sends one. */
export async function receiveMessage<T>(child: ChildProcess): Promise<T> {
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`${child.spawnargs.join(' ')} exited with ${code} before it sent a message`)
  })
  const [message] = await Promise.race([once(child, 'message'), exited])
  return message
}
