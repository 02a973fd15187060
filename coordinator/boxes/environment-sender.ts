// Sends the variables of a box to its agent when it connects and after each change: an API key among them makes a coding
// agent ready. Commands and prompts have the variables in their own requests.
import type { Logger } from 'pino'
import type { AgentEnvironment } from '../../shared/api/prompts.ts'
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { Db } from '../db/open.ts'
import { findVariableColumns } from './store/boxes.ts'
import { getBoxVariables } from './variables.ts'

export type EnvironmentSender = {
  /** Call it after the commit of a change. */
  onChange(boxId: string): void
  close(): void
}

const RESPONSE_TIMEOUT_MS = 10_000
/** An agent of an earlier version does not have the route. */
const NOT_FOUND = 404

export function createEnvironmentSender(options: {
  db: Db
  tunnels: Pick<Tunnels, 'current' | 'on' | 'off'>
  log: Pick<Logger, 'warn'>
}): EnvironmentSender {
  const { db, tunnels, log } = options
  /** The boxes whose variables are being sent. true: the variables have changed since they were read. */
  const sending = new Map<string, boolean>()
  /** The boxes whose variables changed while the agent was disconnected: it may have variables that were removed. */
  const changed = new Set<string>()

  async function send(boxId: string): Promise<void> {
    const tunnel = tunnels.current(boxId)
    if (tunnel === undefined) {
      changed.add(boxId)
      return
    }
    const row = await findVariableColumns(db, boxId)
    if (row === undefined) return void changed.delete(boxId)
    const env = getBoxVariables(row)
    // A new agent has no variables.
    if (Object.keys(env).length === 0 && !changed.has(boxId)) return
    const content: AgentEnvironment = { env }
    const { status } = await tunnel.call({
      method: 'PUT',
      path: '/environment',
      body: JSON.stringify(content),
      timeoutMs: RESPONSE_TIMEOUT_MS,
    })
    changed.delete(boxId)
    if (status >= 300 && status !== NOT_FOUND)
      log.warn({ boxId, status }, 'the agent has refused the variables of its box')
  }

  /** One request at a time per box, so that the last one has the newest variables. */
  async function sendLatest(boxId: string): Promise<void> {
    if (sending.has(boxId)) return void sending.set(boxId, true)
    do {
      sending.set(boxId, false)
      await send(boxId).catch((err: unknown) => {
        // The agent gets them when it connects again.
        changed.add(boxId)
        log.warn({ err, boxId }, 'failed to send the variables of a box to its agent')
      })
    } while (sending.get(boxId) === true)
    sending.delete(boxId)
  }

  const onConnected = ({ boxId }: { boxId: string }) => void sendLatest(boxId)
  tunnels.on('connected', onConnected)
  return {
    onChange(boxId) {
      changed.add(boxId)
      void sendLatest(boxId)
    },
    close: () => tunnels.off('connected', onConnected),
  }
}
