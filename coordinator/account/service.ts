// The account as its caller may see it (spec §2.3).
import type { Account } from '../../shared/api/account.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { toTimestamp, toTimestampOrNull } from '../../shared/clock.ts'
import type { BoxService } from '../boxes/service.ts'
import type { Db } from '../db/open.ts'
import type { UserRow, WorkspaceRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import { userById, workspaceById } from './store.ts'

/** Nothing is billed: zeros are true, and what is unknown is null. */
const NO_BILLING: NonNullable<Account['billing']> = {
  balanceMicros: 0,
  burnMicrosPerHour: 0,
  runwayHours: null,
  warnBelowHours: 0,
  planAmountUsd: 0,
  overage: false,
  collecting: false,
  paymentFailed: false,
  paymentGraceUntil: null,
  trial: false,
  billingUrl: null,
}

const mayRead = (actor: Actor, area: 'boxes' | 'workspace'): boolean => {
  // Workspace-wide routes refuse a key limited to boxes (spec §5.9): so it learns nothing of the workspace here.
  if (area === 'workspace' && actor.boxIds) return false
  const level = actor.access === null ? 'write' : (actor.access[area] ?? 'none')
  return level !== 'none'
}

export type AccountService = { load(actor: Actor): Promise<Account> }

/** @param options.edgeUrl the address of the edge, without `/v1/box`. */
export function createAccountService(options: {
  db: Db
  boxes: Pick<BoxService, 'list'>
  edgeUrl: string
}): AccountService {
  const { db, boxes, edgeUrl } = options

  async function load(actor: Actor): Promise<Account> {
    const workspace = await workspaceById(db, actor.workspaceId)
    if (!workspace) throw new Error(`Key ${actor.keyId} belongs to no workspace.`)
    const user = actor.userId === null ? undefined : await userById(db, actor.userId)
    const readsWorkspace = mayRead(actor, 'workspace')
    const seen = mayRead(actor, 'boxes') ? await boxes.list(actor) : []
    return {
      customer: presentCustomer(workspace, readsWorkspace ? user : undefined),
      user: user ? { email: user.email, name: user.name, role: user.role } : null,
      workspace: {
        id: workspace.id,
        name: workspace.name,
        ...(readsWorkspace && {
          zeroDataRetention: workspace.zero_data_retention === 1,
          closingAt: null,
          purgeAfter: null,
        }),
      },
      billing: readsWorkspace ? NO_BILLING : null,
      boxes: seen,
      edge: { url: edgeUrl },
      key: {
        id: actor.keyId,
        kind: actor.keyKind,
        expiresAt: toTimestampOrNull(actor.keyExpiresAt),
        boxIds: actor.boxIds ? [...actor.boxIds] : null,
      },
      ...(actor.access && { access: actor.access }),
      box: oldestLive(seen),
    }
  }

  return { load }
}

const presentCustomer = (workspace: WorkspaceRow, user: UserRow | undefined): Account['customer'] => ({
  id: workspace.id,
  email: user?.email ?? null,
  githubLogin: null,
  status: 'active',
  onboardingStep: null,
  onboardingCompletedAt: null,
  createdAt: toTimestamp(workspace.created_at),
  name: workspace.name,
})

/** Boxes come newest first. */
const oldestLive = (boxes: readonly Box[]): Box | null =>
  boxes.findLast((box) => box.observedState !== 'terminated') ?? null
