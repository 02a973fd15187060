// Many simulated agents: one process opens the tunnels of enrolled machines in a workspace of their own.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { insertMachine } from '../../../coordinator/boxes/insert-machine.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import { addApiKey } from '../../../coordinator/identity/keys/keys.ts'
import { newApiKey } from '../../../shared/api-key.ts'
import { newBoxToken, newId } from '../../../shared/ids.ts'
import { hashToken } from '../enroll.ts'
import { type FleetBox, receiveMessage } from '../fleet.ts'
import type { SimulatedFleet } from '../fleet-agents.ts'
import { createWorkspaceRows } from '../workspace-rows.ts'

const BOXES_PER_TRANSACTION = 50
/** The first connection of a machine costs more than the later ones. */
const STARTS_PER_SECOND = 50

export type SimulatedAgents = {
  boxIds: readonly string[]
  /** Of the owner of their workspace. */
  authHeaders(): { authorization: string }
  /** Milliseconds from the first connection to the last one. */
  connectMs: number
}

/** Resolves when all agents are connected. They disconnect after the test. */
export async function startSimulatedAgents(
  t: Test,
  db: Db,
  { count, url }: { count: number; url: string },
): Promise<SimulatedAgents> {
  const now = Date.now()
  const workspaceId = newId('workspace')
  const rows = createWorkspaceRows({ workspaceId, emails: ['simulated@example.com'], now })
  await db.insertInto('workspaces').values(rows.workspaces).execute()
  await db.insertInto('users').values(rows.users).execute()
  const userId = rows.users[0]?.id ?? ''
  const actor = { workspaceId, userId, role: 'owner' } as unknown as Actor
  const apiKey = newApiKey()
  await transaction(db, (trx) => addApiKey(trx, { workspaceId, userId, hash: hashSecret(apiKey), now }))
  const boxes: FleetBox[] = []
  while (boxes.length < count)
    await transaction(db, async (trx) => {
      for (let n = 0; n < BOXES_PER_TRANSACTION && boxes.length < count; n++) {
        const token = newBoxToken()
        const box = await insertMachine(trx, {
          actor,
          name: `simulated-${boxes.length}`,
          preferredName: null,
          tier: 'nano',
          region: 'us-west-2',
          restricted: false,
          envVars: '[]',
          agentTokenHash: hashToken(token),
          now,
        })
        boxes.push({ boxId: box.id, token })
      }
    })
  const child = fork(fileURLToPath(new URL('../fleet-agents.ts', import.meta.url)))
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  })
  const message: SimulatedFleet = { url, boxes, perSecond: STARTS_PER_SECOND }
  child.send(message)
  const connectMs = count === 0 ? 0 : await receiveMessage<number>(child)
  return {
    boxIds: boxes.map(({ boxId }) => boxId),
    authHeaders: () => ({ authorization: `Bearer ${apiKey}` }),
    connectMs: Math.round(connectMs),
  }
}
