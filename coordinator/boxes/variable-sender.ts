// Sends the variables of a box to its agent when it connects and after each change: an API key among them makes a coding
// agent ready. Commands and prompts have the variables in their own requests. Also sends the paths of the secret files, and what the
// agent needs to connect programs to the broker of secrets, and stores the result of its test.
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { type AgentVariables, agentVariablesResponseSchema } from '../../shared/api/agent-variables.ts'
import type { BrokerTest } from '../../shared/api/secrets.ts'
import { type Clock, systemClock, toTimestamp } from '../../shared/clock.ts'
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { Db } from '../db/open.ts'
import { findVariableColumns } from './store/boxes.ts'
import { subscribeToVariableChanges } from './variable-changes.ts'
import { getBoxVariables } from './variables.ts'

export type VariableSender = {
  /** The latest test of the agent that is connected. */
  getBrokerTest(boxId: string): BrokerTest
  /**
   * Resolves when no change is being sent to the agent of the box: the latest one has been sent, or has failed. Resolves at once
   * when another coordinator has the agent.
   */
  whenSent(boxId: string): Promise<void>
  close(): void
}

/** The agent tests the broker before it responds. */
const RESPONSE_TIMEOUT_MS = 30_000
/** Of requests at once, when the variables of all connected boxes are sent. */
const MAX_CONCURRENT_OF_ALL = 16

export function createVariableSender(options: {
  db: Db
  tunnels: Pick<Tunnels, 'local' | 'on' | 'off'>
  log: Pick<Logger, 'warn'>
  clock?: Clock
  /** What the agent needs to connect programs to the broker; null: the box has no secrets. Default: null. */
  findBroker?(boxId: string): Promise<AgentVariables['broker']>
  /** The paths of its secret files. Default: none. */
  listSecretFiles?(boxId: string): Promise<string[]>
}): VariableSender {
  const { db, tunnels, log, clock = systemClock } = options
  const { findBroker = async () => null, listSecretFiles = async () => [] } = options
  const connected = new Set<string>()
  /** The boxes whose variables are being sent. true: the variables have changed since they were read. */
  const sending = new Map<string, boolean>()
  /** The boxes whose variables are being sent, until the last of these requests. */
  const sent = new Map<string, Promise<void>>()
  /** The boxes with a connected agent that has tested the broker. */
  const tests = new Map<string, BrokerTest>()

  async function send(boxId: string): Promise<void> {
    const tunnel = tunnels.local(boxId)
    if (tunnel === undefined) return
    const row = await findVariableColumns(db, boxId)
    if (row === undefined) return
    const env = getBoxVariables(row)
    // Also without variables: an agent keeps the hosts of secrets, which may have been unmounted while it was disconnected.
    const broker = await findBroker(boxId)
    const secretFiles = await listSecretFiles(boxId)
    const content: AgentVariables = { env, broker: broker ?? null, secretFiles }
    const { status, body } = await tunnel.call({
      method: 'PUT',
      path: '/environment',
      body: JSON.stringify(content),
      timeoutMs: RESPONSE_TIMEOUT_MS,
    })
    storeTest(boxId, status < 300 && broker ? body : null)
    if (status >= 300) log.warn({ boxId, status }, 'the agent has refused the variables of its box')
  }

  /** @param body the response of an agent with secrets */
  function storeTest(boxId: string, body: Buffer | null): void {
    const test = body && parseTest(body)
    if (!test || tunnels.local(boxId) === undefined) tests.delete(boxId)
    else tests.set(boxId, { ...test, checkedAt: toTimestamp(clock.now()) })
  }

  /** One request at a time per box, so that the last one has the newest variables. */
  function sendLatest(boxId: string): void {
    if (sending.has(boxId)) return void sending.set(boxId, true)
    sent.set(boxId, sendUntilLatest(boxId))
  }

  async function sendAgain(boxId: string): Promise<void> {
    sendLatest(boxId)
    await sent.get(boxId)
  }

  async function sendUntilLatest(boxId: string): Promise<void> {
    do {
      sending.set(boxId, false)
      await send(boxId).catch((err: unknown) => {
        // The agent gets them when it connects again.
        tests.delete(boxId)
        log.warn({ err, boxId }, 'failed to send the variables of a box to its agent')
      })
    } while (sending.get(boxId) === true)
    sending.delete(boxId)
    sent.delete(boxId)
  }

  const onConnected = ({ boxId }: { boxId: string }) => {
    connected.add(boxId)
    tests.delete(boxId)
    sendLatest(boxId)
  }
  const onDisconnected = (boxId: string) => {
    connected.delete(boxId)
    tests.delete(boxId)
  }
  tunnels.on('connected', onConnected)
  tunnels.on('disconnected', onDisconnected)
  const unsubscribe = subscribeToVariableChanges(db, sendLatest, {
    onGap() {
      const limit = pLimit(MAX_CONCURRENT_OF_ALL)
      for (const boxId of connected) void limit(() => sendAgain(boxId))
    },
  })
  return {
    whenSent: async (boxId) => sent.get(boxId),
    getBrokerTest: (boxId) => tests.get(boxId) ?? UNKNOWN,
    close() {
      unsubscribe()
      tunnels.off('connected', onConnected)
      tunnels.off('disconnected', onDisconnected)
    },
  }
}

const UNKNOWN: BrokerTest = { state: 'unknown', message: null, checkedAt: null }

/** The agent is not trusted. undefined: the response has no valid test. */
function parseTest(body: Buffer): Pick<BrokerTest, 'state' | 'message'> | undefined {
  try {
    return agentVariablesResponseSchema.parse(JSON.parse(body.toString())).broker ?? undefined
  } catch {
    return undefined
  }
}
