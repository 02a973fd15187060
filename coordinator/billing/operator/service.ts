// What operators do with the accounts of workspaces: list them, add credit, pause workspaces, and check the ledger.
import type {
  CreditRequest,
  CreditResponse,
  Hold,
  LedgerCheck,
  ListWorkspacesQuery,
  OperatorWorkspace,
  OperatorWorkspaceList,
} from '../../../shared/api/operator.ts'
import { type Clock, toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isId, newUuid } from '../../../shared/ids.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import type { WorkspaceRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { encodeCursor, parseCursor } from '../../http/page-cursor.ts'
import { findWorkspace, listOwners, listWorkspaceIds, listWorkspaces } from '../../identity/lookups.ts'
import { recordDueTime } from '../../jobs/due-times.ts'
import type { Billing } from '../billing.ts'
import { evaluateSoon, postCredit } from '../credit.ts'
import { toEntry } from '../ledger.ts'
import type { Finances } from '../service.ts'
import { findEntry, updateAccount } from '../store/accounts.ts'
import type { BillingEntryRow } from '../store/tables.ts'
import { checkWorkspace } from './check-ledger.ts'

export type OperatorServiceOptions = {
  db: Db
  clock: Clock
  billing: Billing
}

/** The access of the routes admits operators only. Each function throws bad_request while billing is off. */
export type OperatorService = {
  list(query: ListWorkspacesQuery): Promise<OperatorWorkspaceList>
  /** Throws not_found, or idempotency_key_reused for a known cause of another credit. */
  credit(actor: Actor, workspaceId: string, request: CreditRequest): Promise<CreditResponse>
  /** Idempotent. Throws not_found. @param reason null: ends the pause */
  setHold(actor: Actor, workspaceId: string, reason: Hold | null): Promise<OperatorWorkspace>
  /** Throws not_found. @param workspaceId undefined: all workspaces */
  checkLedger(workspaceId: string | undefined, signal: AbortSignal): Promise<LedgerCheck>
}

const MICROS_PER_CENT = 10_000

export function createOperatorService({ db, clock, billing }: OperatorServiceOptions) {
  function requireBilling(): NonNullable<Billing> {
    if (billing === null)
      throw new ApiError('bad_request', 'Billing is off. Start the coordinator with BOXWOOD_BILLING=manual.')
    return billing
  }

  const present = async (
    trx: Db | Trx,
    workspace: WorkspaceRow,
    { account, balanceMicros, burnMicrosPerHour }: Finances,
  ): Promise<OperatorWorkspace> => ({
    id: workspace.id,
    name: workspace.name,
    ownerEmail: (await listOwners(trx, workspace.id))[0]?.email ?? null,
    createdAt: toTimestamp(workspace.created_at),
    closingAt: toTimestampOrNull(workspace.closing_at),
    balanceMicros,
    burnMicrosPerHour,
    trial: account.paid_at === null,
    hold: account.hold,
    flaggedAt: toTimestampOrNull(account.flagged_at),
  })

  /** Locks the account of the workspace for the change, and returns its state after it. */
  async function change<Result>(
    workspaceId: string,
    apply: (trx: Trx, finances: Finances, now: number) => Promise<Result>,
  ): Promise<{ result: Result; workspace: OperatorWorkspace }> {
    const { finances } = requireBilling()
    return transaction(db, async (trx) => {
      const workspace = isId('workspace', workspaceId) ? await findWorkspace(trx, workspaceId) : undefined
      if (workspace === undefined) throw new ApiError('not_found', NO_SUCH_WORKSPACE)
      const now = clock.now()
      const result = await apply(trx, await finances.load(trx, workspaceId), now)
      recordDueTime(trx, now)
      return { result, workspace: await present(trx, workspace, await finances.load(trx, workspaceId)) }
    })
  }

  const list: OperatorService['list'] = async ({ limit, before }) => {
    const { finances } = requireBilling()
    const cursor = before === undefined ? undefined : parseCursor(before, (id) => isId('workspace', id))
    const rows = await listWorkspaces(db, { before: cursor, limit: limit + 1 })
    const workspaces: OperatorWorkspace[] = []
    for (const row of rows.slice(0, limit)) {
      const loaded = await transaction(db, (trx) => finances.load(trx, row.id))
      workspaces.push(await present(db, row, loaded))
    }
    const last = rows[limit - 1]
    const hasMore = rows.length > limit && last !== undefined
    return { workspaces, nextBefore: hasMore ? encodeCursor({ at: last.created_at, id: last.id }) : null }
  }

  const credit: OperatorService['credit'] = async (actor, workspaceId, request) => {
    const { cause = newUuid() } = request
    const { result, workspace } = await change(workspaceId, async (trx, { account }, now) => {
      const entry = createEntry(workspaceId, { ...request, cause }, now)
      const isPayment = entry.debit === 'manual_payments'
      const isCreated = await postCredit(trx, account, { entry, isPayment, now })
      if (!isCreated) await assertSameCredit(trx, entry)
      else
        recordAuditEvent(trx, {
          kind: 'billing.credit',
          actor: { ...actor, workspaceId },
          boxId: null,
          detail: { cause, amountUsd: request.amountUsd, kind: entry.kind },
          at: now,
        })
      return isCreated
    })
    return { cause, created: result, workspace }
  }

  const setHold: OperatorService['setHold'] = async (actor, workspaceId, reason) => {
    const { workspace } = await change(workspaceId, async (trx, { account }, now) => {
      if (account.hold === reason) return
      await updateAccount(trx, workspaceId, { hold: reason })
      recordAuditEvent(trx, {
        kind: reason === null ? 'billing.release' : 'billing.hold',
        actor: { ...actor, workspaceId },
        boxId: null,
        detail: { reason: reason ?? account.hold },
        at: now,
      })
      // The schedule of the balance suspends the boxes, also after a restart.
      await evaluateSoon(trx, workspaceId, now)
    })
    return workspace
  }

  const checkLedger: OperatorService['checkLedger'] = async (workspaceId, signal) => {
    requireBilling()
    const ids = await listWorkspaceIds(db)
    if (workspaceId !== undefined && !ids.includes(workspaceId))
      throw new ApiError('not_found', NO_SUCH_WORKSPACE)
    const checked = workspaceId === undefined ? ids : [workspaceId]
    const differences: LedgerCheck['differences'] = []
    for (const id of checked) {
      signal.throwIfAborted()
      differences.push(...(await checkWorkspace(db, id)))
    }
    return { workspaces: checked.length, differences }
  }

  return { list, credit, setHold, checkLedger } satisfies OperatorService
}

const NO_SUCH_WORKSPACE = 'There is no such workspace. GET /operator/workspaces lists their ids.'

/** An amount below 0 is an adjustment, also of free credit. */
function createEntry(
  workspaceId: string,
  { amountUsd, free = false, note, cause }: CreditRequest & { cause: string },
  now: number,
): BillingEntryRow {
  const posting = {
    workspace_id: workspaceId,
    cause: `credit:${cause}`,
    amount_micros: Math.round(Math.abs(amountUsd) * 100) * MICROS_PER_CENT,
    note: note ?? null,
    at: now,
  }
  if (amountUsd < 0)
    return toEntry({ ...posting, kind: 'adjustment', debit: 'balance', credit: 'adjustments' })
  return free
    ? toEntry({ ...posting, kind: 'free_credit', debit: 'promotions', credit: 'balance' })
    : toEntry({ ...posting, kind: 'credit', debit: 'manual_payments', credit: 'balance' })
}

async function assertSameCredit(trx: Trx, entry: BillingEntryRow): Promise<void> {
  const earlier = await findEntry(trx, entry.workspace_id, entry.cause)
  if (earlier?.amount_micros === entry.amount_micros && earlier.kind === entry.kind) return
  throw new ApiError('idempotency_key_reused', 'The cause is that of another credit. Use another cause.')
}
