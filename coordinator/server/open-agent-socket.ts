// Opens the socket for agents in the data directory.
import type { Server } from 'node:http'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { CleanupStack } from '../base/cleanup-stack.ts'
import { StartError } from '../base/start-error.ts'
import { listenOnAgentSocket } from '../http/agent-socket.ts'

/** dir: the directory of the socket; null when the boxes cannot use it, for the reason `problem`. */
export type AgentSocket = { dir: string; problem: null } | { dir: null; problem: string }

export type AgentSocketOptions = {
  dataDir: string
  server: Server
  /** Boxes must have their own network, for which they need the socket. */
  isRequired: boolean
  cleanup: Pick<CleanupStack, 'add'>
  log: Pick<Logger, 'warn'>
}

/** Throws StartError when the socket is required and cannot be created. */
export async function openAgentSocket(options: AgentSocketOptions): Promise<AgentSocket> {
  const { dataDir, server, isRequired, cleanup, log } = options
  const dir = join(dataDir, 'agent-socket')
  try {
    const socket = await listenOnAgentSocket(dir, server)
    cleanup.add('close the socket for agents', () => socket.close())
    return { dir, problem: null }
  } catch (err) {
    const problem = `the socket for agents in ${dir} cannot be created: ${(err as Error).message}`
    if (isRequired)
      throw new StartError(
        `Boxes cannot have their own network: ${problem}. Set BOXWOOD_DATA to a directory on a local disk, or set BOXWOOD_LOCAL_NETWORK=host.`,
        { cause: err },
      )
    log.warn({ err, dir }, 'failed to create the socket for agents; boxes share the network of this machine')
    return { dir: null, problem }
  }
}
