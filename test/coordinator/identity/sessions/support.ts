// A coordinator with members, whose sign-in codes are collected, for tests of sign-in.
import type { Test } from 'tap'
import type { UserRow } from '../../../../coordinator/db/schema.ts'
import { newId } from '../../../../shared/ids.ts'
import {
  type CoordinatorOptions,
  type RequestOptions,
  startTestCoordinator,
} from '../../../support/coordinator.ts'

export const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS

/** Codes have no digits and no vowels. */
export const WRONG_CODE = 'AAAA-AAAA'
const NO_KEY: RequestOptions = { key: null }

/** `printed`: the lines on stdout. The limits per client address do not apply unless `addressLimitFactor` is set. */
export async function startSignInCoordinator(t: Test, options: CoordinatorOptions = {}) {
  const printed: string[] = []
  const coordinator = await startTestCoordinator(t, {
    addressLimitFactor: 1000,
    print: (line) => void printed.push(line),
    ...options,
  })
  const { api, instance } = coordinator
  const { db, clock } = instance.context

  /** Adds a workspace. */
  async function addWorkspace(name: string): Promise<string> {
    const id = newId('workspace')
    const row = { id, name, zero_data_retention: 0 as const, created_at: clock.now() }
    await db.insertInto('workspaces').values(row).execute()
    return id
  }

  /** Adds a member. Default: an invited member of the first workspace. */
  async function addMember(email: string, values: Partial<UserRow> = {}): Promise<UserRow> {
    const row: UserRow = {
      id: newId('user'),
      workspace_id: instance.owner?.workspaceId ?? '',
      email,
      name: 'Ann',
      role: 'member',
      created_at: clock.now(),
      joined_at: null,
      removed_at: null,
      ...values,
    }
    await db.insertInto('users').values(row).execute()
    return row
  }

  const requestCode = (email: string, options: RequestOptions = NO_KEY) =>
    api('POST', '/sign-in', { email }, options)
  const confirm = (id: string, code: string, options: RequestOptions = NO_KEY) =>
    api('POST', '/sign-in/confirm', { id, code }, options)

  /** Waits for what the coordinator does after its responses. */
  const finishTasks = () => instance.context.background.close()

  /** The code that was printed last. */
  async function readPrintedCode(): Promise<string> {
    await finishTasks()
    return printed.at(-1)?.split(': ').at(-1) ?? ''
  }

  async function getCode(email: string): Promise<{ id: string; code: string }> {
    const { json, status, text } = await requestCode(email)
    if (status !== 202) throw new Error(`no code: ${text}`)
    return { id: json.id, code: await readPrintedCode() }
  }

  async function signIn(email: string, options: RequestOptions = NO_KEY) {
    const { id, code } = await getCode(email)
    return confirm(id, code, options)
  }

  /** The audit events of the kinds, oldest first. */
  const readAudit = async (...kinds: string[]) =>
    (await db.selectFrom('audit_log').selectAll().where('kind', 'in', kinds).orderBy('no').execute()).map(
      ({ kind, workspace_id, actor_user_id, actor_kind, detail }) => ({
        kind,
        workspace_id,
        actor_user_id,
        actor_kind,
        detail: JSON.parse(detail ?? '{}'),
      }),
    )

  return {
    ...coordinator,
    db,
    printed,
    addWorkspace,
    addMember,
    requestCode,
    confirm,
    finishTasks,
    readPrintedCode,
    getCode,
    signIn,
    readAudit,
  }
}
