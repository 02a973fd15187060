// The rules of workspaces (spec §2.3, §5.7): create, change, close and reopen, and what a closing workspace refuses.
import type { UpdateWorkspaceRequest, Workspace } from '../../../shared/api/workspaces.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { type AuditDetail, type AuditEvent, recordAuditEvent } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import type { WorkspaceRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { recordAccessChange } from '../../http/access-changes.ts'
import type { Actor } from '../../http/actor.ts'
import { recordDueTime } from '../../jobs/due-times.ts'
import { isOperator } from '../assert-operator.ts'
import { confirmActor } from '../confirm-actor.ts'
import { countOwnedWorkspaces, findUserById } from '../store/users.ts'
import { findWorkspace, isFirstWorkspace, updateWorkspace } from '../store/workspaces.ts'
import { insertOwnedWorkspace } from './create-account.ts'
import { scheduleErasure, schedulePurge } from './schedules.ts'

/** Throws workspace_closing. Call it after the other checks of a request, and before the first write. */
export async function assertOpen(trx: Db | Trx, workspaceId: string): Promise<void> {
  const workspace = await findWorkspace(trx, workspaceId)
  if (!workspace || workspace.closing_at !== null) throw new ApiError('workspace_closing')
}

export type WorkspaceServiceOptions = {
  db: Db
  clock: Clock
  /** Whether every person who can sign in may create workspaces. */
  isSignupOpen: boolean
  /** How long a closing workspace can be reopened. */
  purgeDays: number
}

export type WorkspaceService = {
  get(actor: Actor): Promise<Workspace>
  /** Throws not_owner, bad_request for a user without an email address, or not_allowed above the limit. */
  create(actor: Actor, name: string): Promise<Workspace>
  /** Throws bad_request without a field. */
  update(actor: Actor, input: UpdateWorkspaceRequest): Promise<Workspace>
  /** Idempotent. Throws bad_request for another name, and not_allowed for the first workspace. */
  close(actor: Actor, name: string): Promise<Workspace>
  /** Idempotent. Throws workspace_closing once the purge may have started. */
  reopen(actor: Actor): Promise<Workspace>
}

const DAY_MS = 24 * 60 * 60 * 1000

export function createWorkspaceService(options: WorkspaceServiceOptions): WorkspaceService {
  const { db, clock, isSignupOpen, purgeDays } = options

  const record = (trx: Trx, actor: Actor, kind: AuditEvent['kind'], detail: AuditDetail) =>
    recordAuditEvent(trx, { kind, actor, boxId: null, detail, at: clock.now() })

  function create(actor: Actor, name: string): Promise<Workspace> {
    return transaction(db, async (trx) => {
      await confirmActor(trx, actor, clock.now())
      if (!isSignupOpen && !(await isOperator(trx, actor)))
        throw new ApiError(
          'not_owner',
          'Only an owner of the first workspace of this coordinator may create workspaces.',
        )
      const user = actor.userId === null ? undefined : await findUserById(trx, actor.userId)
      if (!user?.email)
        throw new ApiError(
          'bad_request',
          'Your user has no email address, which identifies you in the new workspace. Set it with `box profile --email ADDRESS`, or in the settings of the dashboard.',
        )
      if ((await countOwnedWorkspaces(trx, user.email)) >= LIMITS.ownedWorkspaces)
        throw new ApiError(
          'not_allowed',
          `You are an owner of ${LIMITS.ownedWorkspaces} workspaces, which is the limit. Close one first.`,
        )
      const { workspace, user: owner } = await insertOwnedWorkspace(trx, name, user, clock.now())
      record(trx, { ...actor, workspaceId: workspace.id, userId: owner.id }, 'workspace.create', { name })
      return presentWorkspace(workspace, { closable: true })
    })
  }

  function update(actor: Actor, { name, zeroDataRetention }: UpdateWorkspaceRequest): Promise<Workspace> {
    if (name === undefined && zeroDataRetention === undefined)
      throw new ApiError('bad_request', 'body must have at least one field to change')
    return transaction(db, async (trx) => {
      const row = await confirmActor(trx, actor, clock.now())
      const isRenamed = name !== undefined && name !== row.name
      const isSwitched =
        zeroDataRetention !== undefined && zeroDataRetention !== (row.zero_data_retention === 1)
      if (!isRenamed && !isSwitched) return present(trx, row)
      const written = await updateWorkspace(trx, row.id, {
        ...(isRenamed && { name }),
        ...(isSwitched && { zero_data_retention: zeroDataRetention ? 1 : 0 }),
      })
      record(trx, actor, 'workspace.update', {
        ...(isRenamed && { name, previousName: row.name }),
        ...(isSwitched && { zeroDataRetention }),
      })
      if (isSwitched && zeroDataRetention) {
        // The transaction of the setting also schedules the erasure, so that the erasure continues after a restart.
        const now = clock.now()
        await scheduleErasure(trx, row.id, now)
        recordDueTime(trx, now)
      }
      return present(trx, written)
    })
  }

  function close(actor: Actor, name: string): Promise<Workspace> {
    return transaction(db, async (trx) => {
      const row = await confirmActor(trx, actor, clock.now())
      if (name !== row.name)
        throw new ApiError(
          'bad_request',
          'name must be the name of the workspace, which confirms the request',
        )
      if (await isFirstWorkspace(trx, row.id))
        throw new ApiError(
          'not_allowed',
          'The first workspace of a coordinator cannot be closed: its owners operate the coordinator.',
        )
      if (row.closing_at !== null) return present(trx, row)
      const now = clock.now()
      const purgeAfter = now + purgeDays * DAY_MS
      const written = await updateWorkspace(trx, row.id, { closing_at: now, purge_after: purgeAfter })
      await schedulePurge(trx, row.id, purgeAfter)
      recordDueTime(trx, purgeAfter)
      recordAccessChange(trx, { workspaceId: row.id })
      record(trx, actor, 'workspace.close', { purgeAfter: toTimestamp(purgeAfter) })
      return present(trx, written)
    })
  }

  function reopen(actor: Actor): Promise<Workspace> {
    return transaction(db, async (trx) => {
      const row = await confirmActor(trx, actor, clock.now())
      if (row.closing_at === null) return present(trx, row)
      if (row.purge_after === null || row.purge_after <= clock.now())
        throw new ApiError(
          'workspace_closing',
          'The workspace is being deleted and cannot be reopened any more.',
        )
      const written = await updateWorkspace(trx, row.id, { closing_at: null, purge_after: null })
      await schedulePurge(trx, row.id, null)
      recordAccessChange(trx, { workspaceId: row.id })
      record(trx, actor, 'workspace.reopen', {})
      return present(trx, written)
    })
  }

  return {
    get: async (actor) => present(db, (await findWorkspace(db, actor.workspaceId)) ?? throwMissing(actor)),
    create,
    update,
    close,
    reopen,
  }
}

/** The purge of the workspace has ended between the authentication of the request and now. */
function throwMissing({ workspaceId }: Actor): never {
  throw new ApiError('not_found', `The workspace ${workspaceId} has been deleted.`)
}

const present = async (db: Db | Trx, row: WorkspaceRow): Promise<Workspace> =>
  presentWorkspace(row, { closable: !(await isFirstWorkspace(db, row.id)) })

const presentWorkspace = (row: WorkspaceRow, { closable }: Pick<Workspace, 'closable'>): Workspace => ({
  id: row.id,
  name: row.name,
  createdAt: toTimestamp(row.created_at),
  zeroDataRetention: row.zero_data_retention === 1,
  closable,
  closingAt: toTimestampOrNull(row.closing_at),
  purgeAfter: toTimestampOrNull(row.purge_after),
})
