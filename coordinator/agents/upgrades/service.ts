// Lists the agents of a workspace, and changes the rollout of new builds.
import type { Agent, PatchRolloutRequest, Rollout, RolloutResponse } from '../../../shared/api/agents.ts'
import { type Clock, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { lockWorkspace } from '../../db/lock-workspace.ts'
import { defineTopic, notify } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { AgentRolloutRow, BoxRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { joinFields, readPages, stringifyPages } from '../../http/json-pages.ts'
import type { PageCursor } from '../../http/page-cursor.ts'
import { assertOpen } from '../../identity/workspaces/service.ts'
import type { Tunnels } from '../tunnel/types.ts'
import type { AgentUpgrades, AgentUpgradesOptions } from './agent-upgrades.ts'
import { DEFAULT_ROLLOUT, type RolloutRules } from './decide.ts'
import { findRollout, upsertRollout } from './store.ts'

export type AgentService = {
  /** Returns an AgentList as JSON text. */
  list(actor: Actor): Promise<string>
  /** @throws ApiError bad_request for no field, workspace_closing */
  updateRollout(actor: Actor, changes: PatchRolloutRequest): Promise<RolloutResponse>
}

type AgentFields = 'id' | 'hostname' | 'host' | 'agent_version'

/** What upgrades read and write of boxes. */
export type UpgradedBoxes = {
  find(
    db: Db,
    boxId: string,
  ): Promise<Pick<BoxRow, 'workspace_id' | 'host' | 'agent_failure' | 'agent_failure_dismissed'> | undefined>
  /** @param failure as BoxRow.agent_failure */
  storeFailure(trx: Trx, boxId: string, failure: string | null): Promise<unknown>
  /** Failed builds are offered again to the boxes of the workspace. */
  dismissFailures(trx: Trx, workspaceId: string): Promise<unknown>
  /** A page of the boxes that are not deleted, newest first. */
  list(
    db: Db,
    workspaceId: string,
    page: { before: PageCursor | undefined; limit: number },
  ): Promise<Pick<BoxRow, AgentFields | 'created_at'>[]>
}

export type AgentServiceOptions = {
  db: Db
  clock: Clock
  boxes: UpgradedBoxes
  tunnels: Pick<Tunnels, 'current'>
  upgrades: Pick<AgentUpgrades, 'getStatus'>
}

const toRules = (row: AgentRolloutRow | undefined): RolloutRules =>
  row === undefined ? DEFAULT_ROLLOUT : { share: row.share, paused: row.paused === 1 }

const presentRollout = (row: AgentRolloutRow | undefined): Rollout => ({
  ...toRules(row),
  updatedBy: row?.updated_by ?? null,
  updatedAt: toTimestampOrNull(row?.updated_at ?? null),
})

/** Loads what decides about an upgrade of the box, and stores the failure that its agent reports. */
export const createAgentLoader =
  (db: Db, boxes: UpgradedBoxes): AgentUpgradesOptions['loadBox'] =>
  async (boxId, failure) => {
    const box = await boxes.find(db, boxId)
    if (box === undefined) return undefined
    const isNew = box.agent_failure !== failure
    if (isNew) await transaction(db, (trx) => boxes.storeFailure(trx, boxId, failure))
    const isDismissed = !isNew && box.agent_failure_dismissed === 1
    return {
      workspaceId: box.workspace_id,
      failedBuild: failure === null || isDismissed ? null : (failure.split('@')[0] ?? null),
      rollout: toRules(await findRollout(db, box.workspace_id)),
    }
  }

/** The coordinators apply a changed rollout to the agents that are connected to them. */
export const AGENT_ROLLOUTS = defineTopic<{ workspaceId: string }>('agent rollouts')

export function createAgentService(options: AgentServiceOptions): AgentService {
  const { db, clock, boxes, tunnels, upgrades } = options

  async function presentAgent(row: Pick<BoxRow, AgentFields>): Promise<Agent> {
    const { id: boxId, hostname, agent_version: lastVersion } = row
    const tunnel = tunnels.current(boxId)
    if (tunnel === undefined) {
      const offline = { state: 'offline', detail: null, targetBuild: null } as const
      return { boxId, hostname, version: lastVersion, ...offline }
    }
    const { state, detail, build: targetBuild } = await upgrades.getStatus(tunnel, row.host)
    return { boxId, hostname, version: tunnel.agentVersion, targetBuild, state, detail }
  }

  async function* listPages(workspaceId: string): AsyncGenerator<Agent[]> {
    for await (const rows of readPages((page) => boxes.list(db, workspaceId, page)))
      yield Promise.all(rows.map(presentAgent))
  }

  return {
    async list({ workspaceId }) {
      const rollout = presentRollout(await findRollout(db, workspaceId))
      return joinFields({ agents: await stringifyPages(listPages(workspaceId)) }, { rollout })
    },

    updateRollout: (actor, changes) =>
      transaction(db, async (trx) => {
        if (changes.share === undefined && changes.paused === undefined)
          throw new ApiError('bad_request', 'body must have share or paused')
        const { workspaceId } = actor
        await lockWorkspace(trx, workspaceId)
        await assertOpen(trx, workspaceId)
        const rules = toRules(await findRollout(trx, workspaceId))
        const { share = rules.share, paused = rules.paused } = changes
        const now = clock.now()
        const row: AgentRolloutRow = {
          workspace_id: workspaceId,
          share,
          paused: paused ? 1 : 0,
          updated_by: actor.userId,
          updated_at: now,
        }
        await upsertRollout(trx, row)
        if (changes.paused === false) await boxes.dismissFailures(trx, workspaceId)
        const detail = { share, paused }
        recordAuditEvent(trx, { kind: 'agent_rollout.update', actor, boxId: null, detail, at: now })
        notify(trx, AGENT_ROLLOUTS, { workspaceId })
        return { rollout: presentRollout(row) }
      }),
  }
}
