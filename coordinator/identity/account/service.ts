// Loads the account object of GET /me (spec §2.3), without the fields that the caller's key may not read.
import type { Account, AccountQuery } from '../../../shared/api/account.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { NO_BILLING } from '../../base/no-billing.ts'
import type { Db } from '../../db/open.ts'
import type { UserRow, WorkspaceRow } from '../../db/schema.ts'
import { rankLevel } from '../../http/access.ts'
import type { Actor } from '../../http/actor.ts'
import { joinFields, stringifyPages } from '../../http/json-pages.ts'
import { findUserById } from '../store/users.ts'
import { findWorkspace } from '../store/workspaces.ts'

/** null: billing is off. */
export type AccountBilling = {
  finances: { describe(workspaceId: string): Promise<NonNullable<Account['billing']>> }
} | null

const canRead = (actor: Actor, area: 'boxes' | 'workspace'): boolean => {
  // A key limited to boxes may not read workspace data: workspace-wide routes reject the key too (spec §5.9).
  if (area === 'workspace' && actor.boxIds) return false
  return rankLevel(actor.access, area) > rankLevel({}, area)
}

/** Loads the account as JSON text. */
export type AccountService = { load(actor: Actor, query?: AccountQuery): Promise<string> }

/** @param options.edgeUrl the base URL of the edge, without `/v1/box`. */
export function createAccountService(options: {
  db: Db
  boxes: { listPages(actor: Actor, query: AccountQuery): AsyncIterable<Box[]> }
  edgeUrl: string
  billing: AccountBilling
}): AccountService {
  const { db, boxes, edgeUrl, billing } = options

  const describeBilling = (workspaceId: string) =>
    billing === null ? NO_BILLING : billing.finances.describe(workspaceId)

  async function load(actor: Actor, query: AccountQuery = {}): Promise<string> {
    const workspace = await findWorkspace(db, actor.workspaceId)
    if (!workspace)
      throw new Error(`The workspace ${actor.workspaceId} of ${actor.credential.id} does not exist.`)
    const user = actor.userId === null ? undefined : await findUserById(db, actor.userId)
    const { credential } = actor
    const canReadWorkspace = canRead(actor, 'workspace')
    let oldestLiveBox: Box | null = null
    async function* listBoxes() {
      if (!canRead(actor, 'boxes')) return
      for await (const page of boxes.listPages(actor, query)) {
        oldestLiveBox = page.findLast((box) => box.observedState !== 'terminated') ?? oldestLiveBox
        yield page
      }
    }
    const boxList = await stringifyPages(listBoxes())
    const account: Omit<Account, 'boxes'> = {
      customer: presentCustomer(actor, workspace, canReadWorkspace ? user : undefined),
      user: user ? { id: user.id, email: user.email, name: user.name, role: user.role } : null,
      workspace: {
        id: workspace.id,
        name: workspace.name,
        ...(canReadWorkspace && {
          zeroDataRetention: workspace.zero_data_retention === 1,
          closingAt: toTimestampOrNull(workspace.closing_at),
          purgeAfter: toTimestampOrNull(workspace.purge_after),
        }),
      },
      billing: canReadWorkspace ? await describeBilling(actor.workspaceId) : null,
      edge: { url: edgeUrl },
      ...(credential.type === 'key' && {
        key: {
          id: credential.id,
          kind: credential.kind,
          expiresAt: toTimestampOrNull(credential.expiresAt),
          boxIds: actor.boxIds ? [...actor.boxIds] : null,
        },
      }),
      ...(actor.access && { access: actor.access }),
      box: oldestLiveBox,
    }
    return joinFields({ boxes: boxList }, account)
  }

  return { load }
}

const getStatus = ({ credential }: Actor, workspace: WorkspaceRow): Account['customer']['status'] => {
  if (credential.type === 'key' && credential.isUnverified) return 'unverified'
  return workspace.closing_at === null ? 'active' : 'closing'
}

const presentCustomer = (
  actor: Actor,
  workspace: WorkspaceRow,
  user: UserRow | undefined,
): Account['customer'] => ({
  id: workspace.id,
  email: user?.email ?? null,
  githubLogin: null,
  status: getStatus(actor, workspace),
  onboardingStep: null,
  onboardingCompletedAt: null,
  createdAt: toTimestamp(workspace.created_at),
  name: workspace.name,
})
