// Shows, creates, changes, closes and reopens workspaces.
import type { CurrentSession } from '../../shared/api/sessions.ts'
import type { UpdateWorkspaceRequest, Workspace } from '../../shared/api/workspaces.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { EXIT } from '../output/exit-codes.ts'
import { formatTimestamp } from '../output/format.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { formatTable, getTerminalWidth } from '../output/table.ts'

export type Output = JsonOption & QuietOption
type Response = { workspace: Workspace }

export async function showWorkspace({ client }: Session, { json }: Output): Promise<undefined> {
  const { workspace } = await client.requestBySession<Response>('GET', '/workspace')
  if (json) printJson(workspace)
  else print(formatWorkspace(workspace))
}

function formatWorkspace({
  id,
  name,
  createdAt,
  zeroDataRetention,
  closingAt,
  purgeAfter,
}: Workspace): string {
  return formatTable([
    ['name', name],
    ['id', id],
    ['created', formatTimestamp(createdAt)],
    ['zero data retention', zeroDataRetention ? 'on' : 'off'],
    ...(closingAt === null || purgeAfter === null
      ? []
      : [
          [
            'closing',
            `since ${formatTimestamp(closingAt)}; everything is deleted at ${formatTimestamp(purgeAfter)}`,
          ],
        ]),
  ])
}

export async function listWorkspaces({ client }: Session, { json, quiet }: Output): Promise<undefined> {
  const { workspace, workspaces } = await client.requestBySession<CurrentSession>('GET', '/session')
  const rows = workspaces.map(({ id, name, role }) => [id === workspace.id ? '*' : '', name, role, id])
  if (json) printJson({ workspaces })
  else if (quiet) for (const { id } of workspaces) print(id)
  else print(formatTable([['', 'WORKSPACE', 'ROLE', 'ID'], ...rows], getTerminalWidth()))
}

export async function createWorkspace(
  { client }: Session,
  name: string,
  { json, quiet }: Output,
): Promise<undefined> {
  const { workspace } = await client.requestBySession<Response>('POST', '/workspaces', { name })
  if (json) printJson(workspace)
  else {
    if (!quiet)
      printStderr(
        `Workspace ${sanitize(workspace.name)} was created. \`box workspace use ${workspace.id}\` switches to it.`,
      )
    print(workspace.id)
  }
}

export async function updateWorkspace(
  { client }: Session,
  request: UpdateWorkspaceRequest,
  { json, quiet }: Output,
): Promise<undefined> {
  const { workspace } = await client.requestBySession<Response>('PATCH', '/workspace', request)
  const retention = workspace.zeroDataRetention ? 'on' : 'off'
  if (json) printJson(workspace)
  else if (!quiet) printStderr(`Workspace ${sanitize(workspace.name)}: zero data retention is ${retention}.`)
}

/** Returns the exit code. */
export async function enableZeroDataRetention(
  session: Session,
  options: Output & { yes?: boolean },
): Promise<number> {
  const question =
    'Erase the stored commands, their output and the details of the audit log? They cannot be restored.'
  if (!(await isConfirmed(session, question, options))) return EXIT.failed
  await updateWorkspace(session, { zeroDataRetention: true }, options)
  return EXIT.ok
}

/** Returns the exit code. @param name confirms the request: the coordinator refuses another name */
export async function closeWorkspace(
  session: Session,
  name: string,
  options: Output & { yes?: boolean },
): Promise<number> {
  const question = `Close the workspace ${sanitize(name)}? Later, all boxes, files, members, keys and the audit log are deleted.`
  if (!(await isConfirmed(session, question, options))) return EXIT.failed
  const { workspace } = await session.client.requestBySession<Response>('POST', '/workspace/close', { name })
  if (options.json) printJson(workspace)
  else if (!options.quiet) {
    const end = workspace.purgeAfter === null ? 'later' : `at ${formatTimestamp(workspace.purgeAfter)}`
    printStderr(
      `Workspace ${sanitize(name)} is closing. Everything is deleted ${end}. \`box workspace reopen\` reopens it until then.`,
    )
  }
  return EXIT.ok
}

export async function reopenWorkspace({ client }: Session, { json, quiet }: Output): Promise<undefined> {
  const { workspace } = await client.requestBySession<Response>('POST', '/workspace/reopen')
  if (json) printJson(workspace)
  else if (!quiet) printStderr(`Workspace ${sanitize(workspace.name)} is open.`)
}

async function isConfirmed(
  { signal }: Session,
  question: string,
  { yes, json }: Output & { yes?: boolean },
): Promise<boolean> {
  if (yes || !canAsk(json ?? false) || (await confirm(question, signal))) return true
  printMessage('nothing was changed.')
  return false
}
